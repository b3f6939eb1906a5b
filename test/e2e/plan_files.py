"""Plan files taken apart and put together again, to make broken ones. The format is runtime/plan/FORMAT.md's."""

import functools
import struct
import subprocess
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

REPOSITORY = Path(__file__).resolve().parents[2]
MAGIC = b"DSPLAN\r\n"
HEADER_BYTES = 24


@functools.cache
def plan_class():
    """The message ds.plan.proto.Plan, from plan.proto itself."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["protoc", f"-I{REPOSITORY}", "--include_imports", f"--descriptor_set_out={folder}/set",
                        "runtime/plan/plan.proto"], check=True, cwd=REPOSITORY)
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(folder) / "set").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ds.plan.proto.Plan"))


def crc32c(data: bytes) -> int:
    """Castagnoli's CRC, reflected polynomial 0x82F63B78."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_plan(path):
    data = Path(path).read_bytes()
    length, checksum, zero = struct.unpack("<QII", data[len(MAGIC):HEADER_BYTES])
    message = data[HEADER_BYTES:]
    assert data.startswith(MAGIC) and length == len(message) and checksum == crc32c(message) and zero == 0
    return plan_class().FromString(message)


def write_plan(path, plan) -> Path:
    message = plan.SerializeToString(deterministic=True)
    Path(path).write_bytes(MAGIC + struct.pack("<QII", len(message), crc32c(message), 0) + message)
    return Path(path)
