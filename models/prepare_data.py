#!/usr/bin/env python3
"""Makes training data that ds-run reads: samples as safetensors, or one stream of tokens. See README.md."""

import argparse
import os
import sys
from pathlib import Path

import numpy

from exporting import Refusal, first_line
from exporting.arguments import Parser, positive

# Suffix -> element type of a token stream, little-endian. The longer suffix is looked for first.
STREAMS = {".u32.bin": numpy.dtype("<u4"), ".bin": numpy.dtype("<u2")}


def main(arguments=None) -> int:
    args = parse(arguments)
    try:
        {"text": prepare_text, "images": prepare_images}[args.command](args)
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    return 0


def prepare_text(args) -> None:
    """Files -> tokens, in order and without separators -> args.out; leaves nothing behind when it raises Refusal."""
    tokens = tokenize(args.files, args.tokenizer)
    stream = next((kind for suffix, kind in STREAMS.items() if args.out.name.endswith(suffix)), None)
    if stream is not None:
        write_whole(args.out, stream_bytes(tokens, stream))
        print(f"{args.out}: {len(tokens):,} tokens, {stream.itemsize} bytes each")
    elif args.out.suffix == ".safetensors":
        samples, rest = cut(tokens, args.seq)
        write_whole(args.out, sample_bytes(samples))
        print(f"{args.out}: {len(samples):,} samples of {args.seq} tokens as input_ids and labels; {rest} tokens left over")
    else:
        raise Refusal(f"--out {args.out}: unknown kind; end it in .safetensors, {' or '.join(STREAMS)}")


def tokenize(files, tokenizer: str) -> numpy.ndarray:
    """Token ids of all files, int64 [tokens]; `tokenizer` is "bytes" or a local folder or tokenizer.json."""
    if tokenizer == "bytes":
        return numpy.frombuffer(b"".join(read(path) for path in files), numpy.uint8).astype(numpy.int64)
    encode = load_tokenizer(tokenizer)
    ids = []
    for path in files:
        try:
            text = read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal(f"{path} is not UTF-8 at byte {error.start}; convert it, or use --tokenizer bytes") from error
        ids.extend(encode(text))
    return numpy.array(ids, numpy.int64)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}") from error


def load_tokenizer(path: str):
    """A function text -> token ids, special tokens left out."""
    if os.path.isfile(path):
        import tokenizers
        try:
            return lambda text, model=tokenizers.Tokenizer.from_file(path): model.encode(text, add_special_tokens=False).ids
        except Exception as error:
            raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
    if not os.path.isdir(path):
        raise Refusal(f"--tokenizer {path} does not exist; give bytes, a tokenizer.json or a saved tokenizer's folder")
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    transformers.logging.set_verbosity_error()  # a stream is longer than the model's context, and may be
    try:
        model = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    except Exception as error:
        raise Refusal(f"--tokenizer {path}: {first_line(error)}") from error
    return lambda text: model(text, add_special_tokens=False)["input_ids"]


def cut(tokens, length: int):
    """(samples [n, length], number of tokens that fill no sample); refuses fewer than one sample."""
    count = len(tokens) // length
    if count == 0:
        raise Refusal(f"{len(tokens)} tokens do not fill one sample of --seq {length}; give more text or --seq {max(len(tokens), 1)}")
    return tokens[:count * length].reshape(count, length), len(tokens) - count * length


def sample_bytes(samples) -> bytes:
    """A safetensors file with one tensor per graph input of the exported language models."""
    import safetensors.numpy
    # The models shift their labels themselves (metadata deepstatic.tokens), so both are the same tokens.
    return safetensors.numpy.save({"input_ids": samples, "labels": samples})


def stream_bytes(tokens, kind: numpy.dtype) -> bytes:
    """The tokens as `kind`; refuses ids that it cannot hold."""
    if len(tokens) == 0:
        raise Refusal("the files hold no token")
    if tokens.max() > numpy.iinfo(kind).max:
        raise Refusal(f"token id {tokens.max()} does not fit {8 * kind.itemsize} bits; end --out in .u32.bin")
    return tokens.astype(kind).tobytes()


def prepare_images(args) -> None:
    """Arrays of the user's, or images drawn from --seed -> args.out."""
    if (args.images is None) != (args.labels is None):
        raise Refusal("give both --images X.npy and --labels Y.npy, or neither")
    if args.out.suffix != ".safetensors":
        raise Refusal(f"--out {args.out}: unknown kind; end it in .safetensors")
    images, labels = draw_images(args) if args.images is None else read_images(args.images, args.labels)
    import safetensors.numpy
    write_whole(args.out, safetensors.numpy.save({"pixel_values": images, "labels": labels}))
    shape = " x ".join(map(str, images.shape[1:]))
    print(f"{args.out}: {len(images):,} images of {shape} as pixel_values, and labels 0 to {labels.max()}")


def draw_images(args):
    """A coarse pattern per class, and noise over every pixel: flat images would have ties in max pooling."""
    generator = numpy.random.default_rng(args.seed)
    labels = generator.integers(args.classes, size=args.count)
    cells = min(4, args.size)
    patterns = generator.standard_normal((args.classes, 3, cells, cells)).astype(numpy.float32)
    places = numpy.arange(args.size) * cells // args.size
    images = patterns[labels][:, :, places][:, :, :, places]
    images += 0.5 * generator.standard_normal(images.shape, dtype=numpy.float32)
    return images, labels.astype(numpy.int64)


def read_images(images: Path, labels: Path):
    """uint8 [n, height, width, 3], scaled to -1 ... 1, or float32 [n, 3, height, width] as they are; integers [n]."""
    pixels, classes = load_array(images), load_array(labels)
    if pixels.dtype == numpy.uint8 and pixels.ndim == 4 and pixels.shape[3] == 3:
        pixels = (pixels.transpose(0, 3, 1, 2) / numpy.float32(127.5) - 1).astype(numpy.float32)
    if pixels.dtype != numpy.float32 or pixels.ndim != 4 or pixels.shape[1] != 3:
        raise Refusal(f"{images} holds {pixels.dtype} {list(pixels.shape)}; images are uint8 [n, height, width, 3] or "
                      "float32 [n, 3, height, width]")
    if classes.dtype.kind not in "iu" or classes.shape != pixels.shape[:1] or len(classes) == 0:
        raise Refusal(f"{labels} holds {classes.dtype} {list(classes.shape)}; labels are integers [{len(pixels)}], one an image")
    return numpy.ascontiguousarray(pixels), classes.astype(numpy.int64)


def load_array(path: Path) -> numpy.ndarray:
    try:
        return numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Refusal(f"{path} is no array written by numpy.save: {first_line(error)}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Writes beside and renames: the file is there in full or as it was."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"--out {path}: {error.strerror}") from error


def parse(arguments) -> argparse.Namespace:
    parser = Parser(prog="prepare_data.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="text|images")
    text = commands.add_parser("text", help="text files to token ids")
    text.add_argument("files", nargs="+", type=Path, metavar="FILE")
    text.add_argument("--tokenizer", default="bytes",
                      help="bytes (ids 0 to 255, the default), a tokenizer.json, or a saved tokenizer's folder")
    text.add_argument("--seq", type=positive, default=128, help="tokens a sample (default 128)")
    text.add_argument("--out", type=Path, required=True, help="F.safetensors: input_ids and labels, int64 [samples, seq]; "
                      "F.bin or F.u32.bin: a stream of 16-bit or 32-bit ids")
    images = commands.add_parser("images", help="arrays of images, or drawn ones, to pixel_values and labels")
    images.add_argument("--images", type=Path, metavar="X.npy", help="uint8 [n, height, width, 3] or float32 [n, 3, height, "
                        "width]; without it, images are drawn from --seed")
    images.add_argument("--labels", type=Path, metavar="Y.npy", help="integers [n]")
    images.add_argument("--count", type=positive, default=1000, help="of drawn images (default 1000)")
    images.add_argument("--size", type=positive, default=224, help="of drawn images, in pixels (default 224)")
    images.add_argument("--classes", type=positive, default=10, help="of drawn images (default 10)")
    images.add_argument("--seed", type=int, default=0, help="of drawn images (default 0)")
    images.add_argument("--out", type=Path, required=True, help="F.safetensors: pixel_values float32 [n, 3, height, width] "
                        "and labels int64 [n]")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
