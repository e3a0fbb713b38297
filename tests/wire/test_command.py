"""`kbroker wire decode` and `capture`, as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.cli import main
from tests.wire.captures import ETHERNET, Talk, linked, pcap
from tests.wire.golden import exchange, framed
from tests.wire.test_capture import talk
from tests.wire.test_hex_input import c_items, wireshark_dump

FETCH = exchange("Fetch", 12)


def decode(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(["wire", "decode", *arguments])
    except SystemExit as error:
        code = int(error.code or 0)
    return code, *capsys.readouterr()


@pytest.mark.parametrize("lengths", [True, False], ids=["with lengths", "without"])
def test_a_request_and_its_response_one_after_the_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, lengths: bool
) -> None:
    frames = [framed(frame) if lengths else frame for frame in (FETCH.request, FETCH.response)]
    file = tmp_path / "frames.hex"
    file.write_text("\n\n".join(frame.hex() for frame in frames))
    code, out, _ = decode(capsys, str(file), "--json")
    request, response = map(json.loads, out.splitlines())
    assert code == 0
    assert (request["direction"], request["api"], request["version"]) == ("request", "Fetch", 12)
    assert (response["direction"], response["client_id"]) == ("response", request["client_id"])
    assert response["fields"]["responses"][0]["topic"] == "golden"


def test_raw_bytes_of_several_frames(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "frames"
    file.write_bytes(
        framed(FETCH.request) + framed(exchange("Heartbeat", 4).request) + framed(FETCH.response)
    )
    code, out, _ = decode(capsys, str(file), "--brief")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["→", "Fetch"],
        ["→", "Heartbeat"],
        ["←", "Fetch"],
    ]


def test_a_response_alone_needs_to_be_told_what_it_answers(capsys: pytest.CaptureFixture[str]) -> None:
    answer = exchange("DescribeConfigs", 4).response
    code, out, _ = decode(
        capsys, "--hex", answer.hex(), "--response", "--api", "describeconfigs", "--version", "4"
    )
    assert code == 0
    assert 'name: "compression.type"' in out
    code, _, error = decode(capsys, "--hex", answer.hex(), "--response")
    assert code == 2
    assert "--api NAME and --version N" in error
    code, _, error = decode(capsys, "--hex", "000003e7ffff0000000000", "--no-length")
    assert code == 4
    assert decode(capsys, "--hex", answer.hex(), "--response", "--api", "Fetsh", "--version", "1")[0] == 2


def test_a_frame_that_ends_early_is_told_with_the_byte_and_the_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = decode(capsys, "--hex", framed(exchange("Metadata", 12).request)[:-2].hex())
    assert code == 4
    assert "UNREADABLE at byte" in out.splitlines()[0]
    assert out.splitlines()[-1].split()[1] == "^"


def test_a_length_beyond_the_bytes_is_told_although_the_message_is_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = exchange("Metadata", 12).request
    code, out, _ = decode(capsys, "--hex", (len(frame) + 5).to_bytes(4, "big").hex() + frame.hex())
    assert code == 4
    assert f"the frame ends: {len(frame)} of its {len(frame) + 5} bytes are there" in out


def test_a_packet_that_was_copied_with_its_headers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Wireshark copies the whole packet."""
    made = Talk()
    made.send("client", framed(FETCH.request))
    file = tmp_path / "packet"
    file.write_text(wireshark_dump(linked(made.packets[0], ETHERNET)))
    code, out, _ = decode(capsys, str(file))
    assert code == 0
    assert out.startswith("→ Fetch v12")


def test_a_followed_stream_of_wireshark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "stream.c"
    file.write_text(
        f"char peer0_0[] = {{ /* Packet 4 */\n{c_items(framed(FETCH.request))} }};\n"
        f"char peer1_0[] = {{ /* Packet 6 */\n{c_items(framed(FETCH.response))} }};\n"
    )
    code, out, _ = decode(capsys, str(file), "--brief")
    assert (code, [line[0] for line in out.splitlines()]) == (0, ["→", "←"])


def test_what_is_no_hex_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = decode(capsys, "--hex", "hello")
    assert code == 1
    assert "no hex dump" in error


def test_a_capture_and_its_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "capture.pcap"
    file.write_bytes(pcap(talk().packets))
    assert main(["wire", "capture", str(file), "--summary", "--api", "Fetch,Heartbeat"]) == 0
    out, error = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split()[2:4] for line in lines[:4]] == [
        ["→", "Fetch"],
        ["←", "Fetch"],
        ["→", "Heartbeat"],
        ["←", "Heartbeat"],
    ]
    assert "P99 MS" in out
    assert error.endswith("packets, 1 Kafka connections\n")
    file.write_text("hello")
    assert main(["wire", "capture", str(file)]) == 1
    assert "neither pcap nor pcapng" in capsys.readouterr().err


def test_only_the_wire_command_loads_construct() -> None:
    """Its 40 ms are nobody else's: not the broker's, not those of the other commands."""
    script = (
        "import sys; from kbroker.cli import make_parser; make_parser(); "
        "import kbroker.server, kbroker.broker; "
        "assert 'construct' not in sys.modules; assert 'kbroker.wire' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
