"""Arithmetic modulo the prime P. What is linear is exact; what is not is a seeded hash of all that it depends on.

Elements of float types are int64 in [0, P), those of other types the integers themselves. A sum is the same in every order. Two
different polynomials of degree d agree at a random point with a probability of at most d / P (Schwartz and Zippel).
"""

import fractions
import hashlib
import math

import numpy

P = (1 << 31) - 1


def mix(x):
    """splitmix64's finalizer, element by element."""
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def words(data):
    return numpy.ascontiguousarray(data, dtype=numpy.int64).view(numpy.uint64)


def centered(data):
    """Representatives in (-P / 2, P / 2): the order that comparisons go by."""
    return numpy.where(data > P // 2, data - P, data)


class Field:
    """One of the two number types that kernels.py computes with; the other is real.py's."""

    def __init__(self, seed: int, lossy=False, unclipped=()):
        self.seed, self.lossy, self.unclipped = seed, lossy, unclipped

    # ---- where numbers come from

    def key(self, *what):
        digest = hashlib.blake2b(repr((self.seed, what)).encode(), digest_size=8).digest()
        return numpy.frombuffer(digest, numpy.uint64)

    def stream(self, key, count):
        """`count` random elements that follow from a key."""
        return (mix(mix(numpy.arange(count, dtype=numpy.uint64)) + key) % numpy.uint64(P)).astype(numpy.int64)

    def constants(self, numbers, dtype):
        """What doubles are, rounded to the type: m 2^e is exact modulo P, what is not finite is a random element."""
        numbers = numpy.asarray(numbers, numpy.float64)
        if dtype.name != "f64":
            with numpy.errstate(over="ignore"):
                numbers = numbers.astype(numpy.float32).astype(numpy.float64)
        known = {number: self.constant(number) for number in numpy.unique(numbers).tolist()}
        return numpy.array([known[number] if number == number else self.constant(math.nan) for number in numbers.ravel().tolist()],
                           numpy.int64).reshape(numbers.shape)

    def constant(self, number: float) -> int:
        if not math.isfinite(number):
            return int(self.stream(self.key("constant", str(number)), 1)[0])
        ratio = fractions.Fraction(number)
        return ratio.numerator * pow(ratio.denominator, -1, P) % P

    def rounded(self, data, dtype):
        """To 16 bits, whose place in a program matters, by a hash, but in lossy plans; all other floats are one type here."""
        return self.hashed(f"round to {dtype.name}", (), [data]) if dtype.width == 2 and not self.lossy else data

    # ---- exact

    add = staticmethod(lambda a, b: (a + b) % P)
    sub = staticmethod(lambda a, b: (a - b) % P)
    mul = staticmethod(lambda a, b: a * b % P)
    neg = staticmethod(lambda a: -a % P)
    sum = staticmethod(lambda a, axes: a.sum(axis=axes) % P)
    cumsum = staticmethod(lambda a, axis: numpy.cumsum(a, axis=axis) % P)

    def div(self, a, b):
        return self.mul(a, self.inverse(b))

    def inverse(self, a):
        """a^(P - 2), Fermat; 0 of 0."""
        result = numpy.ones_like(a)
        for bit in f"{P - 2:b}":
            result = result * result % P * (a if bit == "1" else 1) % P
        return result

    def pow(self, a, b):
        """Products where the exponent is a small whole number, so that x^2 is x x; else a hash."""
        a, b = numpy.broadcast_arrays(a, b)
        result, power = self.hashed("pow", (), [a, b]), numpy.ones_like(a)
        for exponent in range(17):
            result = numpy.where(b == exponent, power, result)
            power = power * a % P
        return result

    def matmul(self, a, b):
        """Four exact products of halves in float64: sums stay below 2^53 for a common dimension below 2^20."""
        high_a, low_a, high_b, low_b = (half.astype(numpy.float64) for x in (a, b) for half in (x >> 16, x & 0xFFFF))
        product = {(i, j): (x @ y).astype(numpy.int64) % P for i, x in enumerate((low_a, high_a)) for j, y in enumerate((low_b, high_b))}
        return (product[0, 0] + (product[0, 1] + product[1, 0]) % P * (1 << 16) + product[1, 1] * 2) % P  # 2^32 = 2 modulo P

    # ---- by the order of representatives

    ordered = to_integers = staticmethod(centered)
    from_ordered = of_integers = reduced = staticmethod(lambda a: a % P)
    is_nan = staticmethod(numpy.zeros_like)

    # ---- hashed

    def unary(self, name, a):
        return self.hashed(name, (), [a])

    def hashed(self, name, attributes, inputs):
        """Element by element: each result follows from one element of each input."""
        h, arrays = self.key(name, attributes), numpy.broadcast_arrays(*inputs)
        for data in arrays:
            h = mix(h + mix(words(data.ravel())))
        return (h % numpy.uint64(P)).astype(numpy.int64).reshape(arrays[0].shape)

    def opaque(self, name, attributes, inputs, shapes):
        """Whole: each element of the results follows from all elements of the inputs, and from its own place."""
        h = self.key(name, attributes, [data.size for data in inputs])
        for data in inputs:
            flat = words(data.ravel())
            h = mix(h + mix(flat + mix(numpy.arange(flat.size, dtype=numpy.uint64) + h)).sum(dtype=numpy.uint64))
        return [self.stream(mix(h + numpy.uint64(1 + i)), math.prod(shape)).reshape(shape) for i, shape in enumerate(shapes)]

    def update(self, name, attributes, inputs, count):
        """An optimizer's new values, element by element."""
        return [self.hashed(name, (attributes, i), inputs) for i in range(count)]

    def mask(self, key, shape):
        return self.stream(self.key(*key), math.prod(shape)).reshape(shape)

    def first(self, index, shape, numbers):
        """The first value of a float variable that learns or is learned by: any, whatever the plan says it is."""
        return self.stream(self.key("variable", index), math.prod(shape)).reshape(shape)

    def drawn(self, key, count):
        return self.stream(self.key(*key), count)
