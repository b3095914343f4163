"""Two workers that do nothing: python -m tests.service.http.idle_workers FOLDER. Prints the port at which they listen.

Each leaves a file in the folder, called by the number of its process.
"""

import os
import socket
import sys
import time
from pathlib import Path

from spillover.cli.server_processes import run_workers
from tests.waiting import HANG


def idle(folder: Path, listening: socket.socket) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(HANG)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as found:
        print(found.getsockname()[1], flush=True)
        run_workers(idle, Path(sys.argv[1]), found, 2)
