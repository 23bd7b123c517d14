"""Spark's ports answer those who know the secret of the session, and its secret is on no command line."""

import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from viewkeeper.lake.tables import spark_session as session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RPC_REQUEST, RPC_FAILURE = 3, 5


def answer(port: int, body: bytes) -> tuple[int, str]:
    """What Spark's transport answers to a request of somebody who has not authenticated: its kind, and its words."""
    message = struct.pack(">bqi", RPC_REQUEST, 1, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(struct.pack(">q", 8 + len(message)) + message)
        received = b""
        while len(received) < 9 or len(received) < struct.unpack(">q", received[:8])[0]:
            part = connection.recv(65536)
            if not part:
                break
            received += part
    return received[8], received[21:].decode(errors="replace")


@pytest.mark.cluster
def test_the_driver_refuses_who_does_not_authenticate(spark: "SparkSession") -> None:
    port = int(spark.conf.get("spark.driver.port") or 0)
    # The beginning of a serialized Java object: what an attacker would send.
    kind, words = answer(port, b"\xac\xed\x00\x05" + bytes(64))
    assert kind == RPC_FAILURE
    assert "SaslMessage" in words or "Unknown challenge" in words or "authent" in words.lower(), words


@pytest.mark.cluster
def test_the_secret_is_on_no_command_line(spark: "SparkSession") -> None:
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    secret = spark.sparkContext.getConf().get(session.SECRET)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(session.SECRET.encode() + b"=" in line for line in lines)
    assert secret is None or not any(secret.encode() in line for line in lines)
