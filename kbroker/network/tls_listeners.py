"""The listeners that speak TLS: each with its settings in force, exchanged while it is open.

New settings (`check`, `settings_changed`), changed files (looked at every few seconds) and SIGHUP (`reload`)
give new connections another context; those that are there stay. What is wrong with new files is told in one
line, and the old ones stay in force.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kbroker.config.listeners import GRPC, Listener
from kbroker.network.tls import Handshakes, new_scratch
from kbroker.pending import Pending
from kbroker.security.tls.context import SETTINGS, Tls, check_replacement, make_tls
from kbroker.security.tls.errors import TlsError

if TYPE_CHECKING:
    from kbroker.config.settings import Settings
    from kbroker.network.budget import Budget
    from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.tls")

CHECK_FILES_SECONDS = 3

Stamps = tuple[tuple[str, int, int, int], ...]  # of files: path, time of the last change, size, inode


class TlsListener:
    """What new connections of a listener take (network/tls.py: TlsSource)."""

    def __init__(self, listener: Listener, tls: Tls, shared: TlsListeners) -> None:
        self.listener = listener
        self.tls = tls
        self.stamps = _stamps(tls.files)
        self.handshakes = shared.handshakes
        self.scratch = shared.scratch
        self.budget = shared.budget


class TlsListeners:
    def __init__(self, settings: Settings, worker: Worker, budget: Budget) -> None:
        self._settings = settings
        self._worker = worker
        self.budget = budget
        self.scratch = new_scratch()
        self.handshakes = Handshakes(settings["kbroker.handshake.timeout.ms"] / 1000)
        self._listeners: list[TlsListener] = []
        self._looking = False

    def open(self, listener: Listener) -> TlsListener:
        """Raises TlsError."""
        try:
            tls = _made(listener, self._values(listener))
        except TlsError as error:
            raise TlsError(f"listener {listener.name}: {error}") from None
        opened = TlsListener(listener, tls, self)
        self._listeners.append(opened)
        return opened

    def check(self, altered: Mapping[str, str | None]) -> None:
        """Whether settings altered in this way could be put in force. Raises TlsError."""
        for each in self._concerned(altered):
            values = self._values(each.listener, altered)
            check_replacement(each.tls, _made(each.listener, values), values)

    def settings_changed(self, names: Collection[str]) -> None:
        """They were checked before."""
        for each in self._concerned(names):
            self._replace(each, self._values(each.listener))

    def reload(self) -> None:
        """Read all files again, whether they changed or not."""
        for each in self._listeners:
            self._read_again(each)

    def look_at_files(self) -> None:
        """Read those again that have changed. To be called every few seconds."""
        if self._looking:  # a file system that does not answer
            return
        self._looking = True
        watched = {each: each.tls.files for each in self._listeners}

        def looked(found: Pending[dict[TlsListener, Stamps]]) -> None:
            self._looking = False
            for each, stamps in found.result().items():
                if stamps != each.stamps and watched[each] == each.tls.files:
                    self._read_again(each)

        self._worker.run(lambda: {each: _stamps(files) for each, files in watched.items()}).then(looked)

    def _read_again(self, each: TlsListener) -> None:
        """Off the loop: a key store may take a tenth of a second to be decrypted."""
        values, tls = self._values(each.listener), each.tls
        each.stamps = _stamps(tls.files)  # what is broken now is told once, not every few seconds

        def read(result: Pending[Tls]) -> None:
            if each.tls is tls:  # else it got other settings meanwhile
                self._take(each, result, values)

        self._worker.run(lambda: _made(each.listener, values)).then(read)

    def _replace(self, each: TlsListener, values: Mapping[str, Any]) -> None:
        made: Pending[Tls] = Pending()
        try:
            made.resolve(_made(each.listener, values))
        except TlsError as error:
            made.fail(error)
        self._take(each, made, values)

    def _take(self, each: TlsListener, made: Pending[Tls], values: Mapping[str, Any]) -> None:
        try:
            tls = made.result()
            check_replacement(each.tls, tls, values)
        except TlsError as error:
            logger.error("listener %s keeps the certificate that it has: %s", each.listener.name, error)
            return
        each.tls = tls
        each.stamps = _stamps(tls.files)
        logger.info(
            "listener %s has a new TLS context: %s", each.listener.name, tls.identity.distinguished_name
        )

    def _concerned(self, names: Iterable[str]) -> list[TlsListener]:
        """The listeners that one of these settings is for."""
        found = []
        for each in self._listeners:
            prefixes = ("", *self._settings.prefixes(each.listener.name))
            if any(name.startswith(tuple(f"{prefix}ssl." for prefix in prefixes)) for name in names):
                found.append(each)
        return found

    def _values(self, listener: Listener, altered: Mapping[str, str | None] | None = None) -> dict[str, Any]:
        values = self._settings.listener_values(listener, SETTINGS, altered or {})
        if listener.uses_sasl and not self._asks_for_certificates(listener, altered or {}):
            values["ssl.client.auth"] = "none"  # as in Kafka: who logs in shows none, unless it is asked here
        return {name: None if value == "" else value for name, value in values.items()}

    def _asks_for_certificates(self, listener: Listener, altered: Mapping[str, str | None]) -> bool:
        """Whether it is said for this listener."""
        names = [f"{prefix}ssl.client.auth" for prefix in self._settings.prefixes(listener.name)]
        given = (altered[name] if name in altered else self._settings.text(name) for name in names)
        return any(text is not None for text in given)


def _made(listener: Listener, values: Mapping[str, Any]) -> Tls:
    """Raises TlsError."""
    tls = make_tls(values)
    if listener.protocol == GRPC:
        tls.context.set_alpn_protocols(["h2"])  # its clients insist on it
    return tls


def _stamps(files: tuple[str, ...]) -> Stamps:
    found = []
    for path in files:
        try:
            status = os.stat(path)
        except OSError:  # it is being replaced, or gone
            found.append((path, 0, 0, 0))
        else:
            found.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
