"""`spillover serve` in a process of its own, that may be killed and started again at the same port."""

import os
import re
import signal
import subprocess
from pathlib import Path
from types import TracebackType

from tests.cli.calls import command
from tests.waiting import HANG, wait_until


class ServerProcess:
    """A server on 127.0.0.1; its output goes to a file in the folder."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.folder, self.options = folder, options
        self.port = 0
        self.starts = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start, and wait for the address."""
        self.starts += 1
        output = self.folder / f"output-{self.starts}"
        with output.open("w") as file:
            self.process = subprocess.Popen(
                command("serve", "--port", self.port, *self.options),
                cwd=self.folder,
                stdout=file,
                stderr=file,
                text=True,
                start_new_session=True,
            )
        wait_until(lambda: "Ctrl-C stops" in output.read_text(), self.process)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", output.read_text())
        assert found is not None
        self.port = int(found[1])
        return self.url

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return (self.folder / f"output-{self.starts}").read_text()

    def end(self, number: int = signal.SIGKILL) -> int:
        """Send a signal, and wait for the end; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(HANG)

    def end_group(self, number: int) -> int:
        """Send a signal to it and to all processes that it has started, as a terminal does."""
        assert self.process is not None
        os.killpg(self.process.pid, number)
        return self.process.wait(HANG)

    def __enter__(self) -> "ServerProcess":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end()
