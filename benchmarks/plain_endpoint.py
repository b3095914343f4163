"""What any service costs: a FastAPI endpoint that writes each request to SQLite, synced to the disk before it answers.

It checks the form of a request, chooses at random, and learns nothing. `python -m benchmarks.plain_endpoint FILE`
"""

import random
import sqlite3
import sys
import threading
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from spillover.http.app import listening_socket

ARMS = [f"arm {k}" for k in range(1, 11)]
SCHEMA = "CREATE TABLE events (id INTEGER PRIMARY KEY, stream TEXT, kind TEXT, round INTEGER, content TEXT)"


class Ask(BaseModel):
    round: int


class Item(BaseModel):
    round: int
    arm: str
    z: float | None = None
    y: float | None = None


class Outcomes(BaseModel):
    outcomes: list[Item]


def plain_app(path: str) -> FastAPI:
    app, lock = FastAPI(), threading.Lock()
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute(SCHEMA)

    def record(stream: str, kind: str, number: int, content: str) -> None:
        with lock:
            database.execute(
                "INSERT INTO events (stream, kind, round, content) VALUES (?, ?, ?, ?)", (stream, kind, number, content)
            )

    @app.post("/v1/streams/{stream}/decisions", status_code=201)
    def decide(stream: str, body: Ask) -> dict[str, Any]:
        chosen = random.sample(ARMS, 3)
        record(stream, "decision", body.round, ",".join(chosen))
        return {"round": body.round, "chosen": chosen}

    @app.post("/v1/streams/{stream}/executions", status_code=201)
    def execute(stream: str, body: Ask) -> dict[str, Any]:
        record(stream, "execution", body.round, "")
        return {"round": body.round}

    @app.post("/v1/streams/{stream}/outcomes")
    def report(stream: str, body: Outcomes) -> dict[str, Any]:
        record(stream, "outcomes", body.outcomes[0].round, body.model_dump_json())
        return {"statuses": [{"status": "recorded"} for _ in body.outcomes]}

    return app


def main(path: str) -> None:
    with listening_socket("127.0.0.1", 0) as socket:
        print(f"http://127.0.0.1:{socket.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(plain_app(path), log_config=None, access_log=False)).run([socket])


if __name__ == "__main__":
    main(sys.argv[1])
