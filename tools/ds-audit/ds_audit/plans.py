"""Reads plan files. The format is runtime/plan/FORMAT.md's; plan.proto is all that is shared with the compiler."""

import dataclasses
import functools
import math
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

REPOSITORY = Path(__file__).resolve().parents[3]
MAGIC = b"DSPLAN\r\n"
HEADER_BYTES = 24
FORMAT = 2
MOST_RANKS = 64
MOST_BYTES = 1 << 29  # of all arenas together
MOST_ELEMENTS = 1 << 26  # of one value
count_of = math.prod  # of a shape


class Refusal(Exception):
    """One sentence: what is wrong with a plan, and where."""


class Unusable(Exception):
    """One sentence: why there is nothing to audit."""


@dataclasses.dataclass(frozen=True)
class DType:
    number: int
    name: str
    width: int
    storage: str = ""  # numpy's type of its bytes; bf16 has none

    @property
    def is_float(self):
        return self.name in ("f16", "f32", "f64", "bf16")


DTYPES = {dtype.number: dtype for dtype in (
    DType(1, "bool", 1, "u1"), DType(2, "u8", 1, "u1"), DType(3, "u16", 2, "<u2"), DType(4, "u32", 4, "<u4"), DType(5, "i32", 4, "<i4"),
    DType(6, "i64", 8, "<i8"), DType(7, "f32", 4, "<f4"), DType(8, "f64", 8, "<f8"), DType(9, "bf16", 2), DType(10, "f16", 2, "<f2"))}
STORED = {"BF16": DTYPES[9], "F16": DTYPES[10], "F32": DTYPES[7]}  # names of types in safetensors


@functools.cache
def plan_class():
    """The message ds.plan.proto.Plan, from plan.proto itself."""
    if not shutil.which("protoc"):
        raise Unusable("protoc is needed to read plan.proto; install the package protobuf-compiler")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["protoc", f"-I{REPOSITORY}", f"--descriptor_set_out={folder}/set", "runtime/plan/plan.proto"],
                              capture_output=True, text=True, cwd=REPOSITORY)
        if done.returncode != 0:
            raise Unusable(f"protoc cannot read runtime/plan/plan.proto: {done.stderr.strip()}")
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(folder) / "set").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ds.plan.proto.Plan"))


def crc32c(data: bytes) -> int:
    """Castagnoli's polynomial, reflected: 0x82F63B78."""
    table, crc = list(range(256)), 0xFFFFFFFF
    for _ in range(8):
        table = [byte >> 1 ^ (0x82F63B78 if byte & 1 else 0) for byte in table]
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def read_plan(path):
    data = read_bytes(path, "plan")
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise Unusable(f"{path} is no plan: it does not begin with DSPLAN")
    length, checksum, zero = struct.unpack("<QII", data[len(MAGIC):HEADER_BYTES])
    message = data[HEADER_BYTES:]
    if length != len(message) or zero != 0 or checksum != crc32c(message):
        raise Unusable(f"plan {path} is damaged: its length or checksum is not that of its {len(message)} bytes")
    try:
        plan = plan_class().FromString(message)
    except DecodeError:
        raise Unusable(f"plan {path} is no message of plan.proto") from None
    if plan.format_version != FORMAT:
        raise Unusable(f"plan {path} has format {plan.format_version}; ds-audit reads {FORMAT}")
    return plan


def of_sizes(plan):
    """The plan of each size of its dimension, as if it were for that alone; the largest first."""
    yield plan
    for length in plan.shorter:
        one = type(plan).FromString(plan.SerializeToString())
        del one.inputs[:], one.shorter[:]
        one.inputs.extend(length.inputs)
        one.reference.CopyFrom(length.reference)
        for role, own in zip(one.roles, length.roles):
            del role.buffers[sum(buffer.scope == 1 for buffer in role.buffers):], role.events[:], role.routines[:], role.programs[:]  # 1: PLAN
            role.MergeFrom(own)
        yield one


def dtype_of(message) -> DType:
    if message.dtype not in DTYPES:
        raise Refusal(f"an element type has the number {message.dtype}, which is none")
    return DTYPES[message.dtype]


def shape_of(message) -> tuple:
    shape = tuple(message.shape)
    if any(size < 0 for size in shape) or count_of(shape) > MOST_ELEMENTS:
        raise Refusal(f"shape {list(shape)} is none that ds-audit executes: sizes are at least 0, elements at most {MOST_ELEMENTS}")
    return shape


def attributes_of(message) -> dict:
    """By name; lists as tuples."""
    result = {}
    for attribute in message.attributes:
        kind = attribute.WhichOneof("value")
        value = getattr(attribute, kind) if kind else None
        if attribute.name in result:
            raise Refusal(f"an attribute {attribute.name} stands twice")
        if kind == "integers" and value.rank_steps:
            raise Refusal(f"ranks add steps to attribute {attribute.name}, which ds-audit does not follow")
        result[attribute.name] = tuple(value.values) if kind in ("integers", "numbers") else value
    return result


def numbers_of(data: bytes, dtype: DType):
    """Little-endian elements as int64 or float64."""
    if dtype.name == "bf16":
        return (numpy.frombuffer(data, "<u2").astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
    return numpy.frombuffer(data, dtype.storage).astype(numpy.float64 if dtype.is_float else numpy.int64)


def first_numbers(plan, index, folder):
    """A variable's first elements where the plan says them; None for those that are drawn or must be given."""
    variable = plan.variables[index]
    dtype, shape, source = dtype_of(variable), shape_of(variable), variable.source
    kind = source.WhichOneof("from")
    if kind == "fill":
        return numpy.full(shape, source.fill, numpy.float64 if dtype.is_float else numpy.int64)
    if kind == "range":
        data, dtype = read_range(plan, source.range, folder), STORED.get(source.range.dtype, dtype)
    elif kind == "literal":
        data = source.literal
    else:
        return None
    if len(data) != count_of(shape) * dtype.width:
        raise Refusal(f"variable {variable.name} has a first value of {len(data)} bytes, not of {count_of(shape) * dtype.width}")
    return numbers_of(data, dtype).reshape(shape)


def read_range(plan, place, folder) -> bytes:
    if place.file >= len(plan.weight_files):
        raise Refusal(f"a first value lies in weight file {place.file} of {len(plan.weight_files)}")
    data = read_bytes(Path(folder) / plan.weight_files[place.file].path, "weight file")
    return data[place.offset:place.offset + place.length]


def read_bytes(path, what) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Unusable(f"{what} {path} cannot be read: {error.strerror}") from None
