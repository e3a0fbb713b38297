"""Backups: whole or not at all, when they are made and when they are restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbroker.storage.files import Files
from kbroker.storage.offline.backup import (
    BackupError,
    check_backup,
    content_of,
    make_backup,
    read_manifest,
    restore_backup,
)

from .support import NOW, Storage, batch, contents

FILES = Files()


@pytest.fixture
def image(tmp_path: Path) -> str:
    storage = Storage(tmp_path / "data")
    for number in range(10):
        storage.log().append_as_leader(batch(f"value {number}"), NOW)
    image = storage.directory.begin_image("image")
    image.finish().result()
    return image.path


@pytest.fixture
def backup(tmp_path: Path, image: str) -> Path:
    made = tmp_path / "backup"
    make_backup(FILES, image, content_of(FILES, image), str(made))
    return made


def restored(backup: Path, target: Path) -> None:
    restore_backup(FILES, str(backup), read_manifest(FILES, str(backup)), str(target))


def a_log_of(backup: Path) -> Path:
    (found,) = (backup / "data").glob("*/*.log")
    return found


def test_a_restored_directory_has_what_was_backed_up(tmp_path: Path, backup: Path) -> None:
    check_backup(FILES, str(backup), read_manifest(FILES, str(backup)))
    restored(backup, tmp_path / "new")
    assert len(contents(Storage(tmp_path / "new").log())) == 10
    assert not list(tmp_path.glob("*.restoring*"))


def test_an_empty_directory_will_do(tmp_path: Path, backup: Path) -> None:
    (tmp_path / "new").mkdir()
    restored(backup, tmp_path / "new")
    assert len(contents(Storage(tmp_path / "new").log())) == 10


@pytest.mark.parametrize("damage", ["a bit", "shorter", "longer", "missing"])
def test_damage_is_found_and_nothing_is_made_of_it(tmp_path: Path, backup: Path, damage: str) -> None:
    log = a_log_of(backup)
    content = bytearray(log.read_bytes())
    if damage == "a bit":
        content[len(content) // 2] ^= 1
    elif damage == "shorter":
        del content[-1]
    elif damage == "longer":
        content.append(0)
    log.write_bytes(content)
    if damage == "missing":
        log.unlink()
    with pytest.raises(BackupError, match=log.name):
        check_backup(FILES, str(backup), read_manifest(FILES, str(backup)))
    with pytest.raises(BackupError, match=log.name):
        restored(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob("*.restoring*"))


def test_one_that_was_cut_short_is_none(tmp_path: Path, backup: Path) -> None:
    (backup / "manifest.json").unlink()
    with pytest.raises(BackupError, match="no backup that is whole"):
        restored(backup, tmp_path / "new")


@pytest.mark.parametrize(
    "path", ["../outside", "/etc/passwd", "topic-0/../../outside", "a/b/c", "", "topic-0/", "./file"]
)
def test_a_manifest_leads_nowhere_else(tmp_path: Path, backup: Path, path: str) -> None:
    manifest = json.loads((backup / "manifest.json").read_text())
    manifest["files"][path] = [0, 0]
    (backup / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BackupError, match="it names"):
        restored(backup, tmp_path / "new")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 1, "time_ms": 1, "files": 3}'])
def test_a_manifest_that_is_none_is_told(tmp_path: Path, backup: Path, text: str) -> None:
    (backup / "manifest.json").write_text(text)
    with pytest.raises(BackupError):
        restored(backup, tmp_path / "new")


def test_neither_takes_a_directory_with_something_in_it(tmp_path: Path, backup: Path, image: str) -> None:
    with pytest.raises(BackupError, match="there is a backup already"):
        make_backup(FILES, image, content_of(FILES, image), str(backup))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    with pytest.raises(BackupError, match="is not empty"):
        restored(backup, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


class FullAfter(Files):
    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def write_all(self, *given: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(28, "No space left on device")
        super().write_all(*given)  # type: ignore[arg-type]


@pytest.mark.parametrize("writes", range(8))
def test_without_room_nothing_is_left(tmp_path: Path, backup: Path, image: str, writes: int) -> None:
    files = FullAfter(writes)
    second = tmp_path / "second"
    try:
        make_backup(files, image, content_of(files, image), str(second))
    except OSError:
        assert list(second.iterdir()) == []
    else:
        assert read_manifest(FILES, str(second)).files
    files = FullAfter(writes)
    try:
        restore_backup(files, str(backup), read_manifest(FILES, str(backup)), str(tmp_path / "new"))
    except OSError:
        assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob("*.restoring*"))


def test_an_image_that_goes_while_it_is_copied_is_told(tmp_path: Path, image: str) -> None:
    content = content_of(FILES, image)
    for log in Path(image).glob("*/*.log"):
        log.unlink()
    with pytest.raises(BackupError, match="is missing"):
        make_backup(FILES, image, content, str(tmp_path / "second"))
    assert not list((tmp_path / "second").iterdir())
