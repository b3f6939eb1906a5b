#!/usr/bin/env python3
"""The polynomials of kernels/elementwise/elementwise_functions.h, fitted anew: prints their coefficients, lowest first.

    build/venv/bin/python scripts/fit_functions.py

A function is fitted to a polynomial by least squares at Chebyshev points, weighted again and again by the error that is
left (Lawson 1961, "Contributions to the theory of linear least maximum approximations"), which tends to the least
maximum. What is fitted is the part of a function behind terms that are kept exactly: exp(r) = 1 + r + r^2 p(r). Numbers of
50 digits, rounded to float32 at the end. The second column is the largest error relative to the whole function.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 50
TWO = mp.mpf(2)


def log_atanh(s):
    """(atanh(q) - q) / q^3 for s = q^2."""
    return mp.mpf(1) / 3 + sum(s**k / (2 * k + 3) for k in range(1, 30))


def quotient(f, drop, power):
    """(f(x) - drop(x)) / x^power, by its own series near 0 where the difference has no digits left."""
    return lambda x: (f(x) - drop(x)) / x**power


def even(f, drop, power):
    """The same of x = sqrt(s)."""
    return lambda s: (f(mp.sqrt(s)) - drop(mp.sqrt(s))) / mp.sqrt(s) ** power


# name: (low, high, degree, what the polynomial stands for, weight of its error in the function)
FITS = {
    "exp": (-0.3467, 0.3467, 4, quotient(mp.exp, lambda r: 1 + r, 2), lambda r: r**2 / mp.exp(r)),
    "log": (-0.3334, 0.3334, 8, quotient(lambda f: mp.log(1 + f), lambda f: f, 2), lambda f: f**2 / mp.log(1 + f)),
    "tanh": (1e-8, 0.61**2, 5, even(mp.tanh, lambda x: x, 3), lambda s: mp.sqrt(s) ** 3 / mp.tanh(mp.sqrt(s))),
    "erf": (1e-8, 0.93**2, 6, even(mp.erf, lambda x: x, 1), lambda s: mp.sqrt(s) / mp.erf(mp.sqrt(s))),
    "erfTail": (0.92, 3.95, 8, lambda x: mp.log(mp.erfc(x)), mp.erfc),
    "sin": (1e-8, 0.7856**2, 3, even(mp.sin, lambda x: x, 3), lambda s: mp.sqrt(s) ** 3 / mp.sin(mp.sqrt(s))),
    "cos": (1e-8, 0.7856**2, 2, even(mp.cos, lambda x: 1 - x**2 / 2, 4), lambda s: s**2 / mp.cos(mp.sqrt(s))),
    "atan": (1e-8, 1, 9, even(mp.atan, lambda x: x, 3), lambda s: mp.sqrt(s) ** 3 / mp.atan(mp.sqrt(s))),
    "logOfPower": (0, 0.0296, 3, log_atanh, lambda s: s),
}


def fit(low, high, degree, function, weight):
    points = 40 * (degree + 1)
    x = [(low + high) / TWO + (high - low) / TWO * mp.cos(mp.pi * (k + mp.mpf(0.5)) / points) for k in range(points)]
    x = [v if abs(v) > mp.mpf(10) ** -9 else mp.mpf(10) ** -9 for v in x]
    y = [function(v) for v in x]
    w = np.array([float(abs(weight(v))) for v in x])
    centre, half = (low + high) / TWO, (high - low) / TWO
    u = np.array([float((v - centre) / half) for v in x])  # columns of Chebyshev polynomials are well conditioned
    columns = np.polynomial.chebyshev.chebvander(u, degree).astype(np.longdouble)
    values = np.array([np.longdouble(mp.nstr(v, 25)) for v in y])
    lawson, best = np.ones(points), None
    for _ in range(300):
        scale = w * np.sqrt(lawson)
        a, b = (columns * scale[:, None]).astype(float), (values * scale).astype(float)
        found = np.linalg.lstsq(a, b, rcond=None)[0].astype(np.longdouble)
        for _ in range(3):  # refine: the residual has digits that the first solution lacks
            rest = ((values - columns @ found) * scale).astype(float)
            found = found + np.linalg.lstsq(a, rest, rcond=None)[0]
        error = np.abs((values - columns @ found) * w).astype(float)
        if best is None or error.max() < best[0]:
            best = (error.max(), found)
        lawson = lawson * (error / error.max() + 1e-12)
        lawson /= lawson.mean()
    monomials = np.polynomial.chebyshev.cheb2poly(best[1])
    # p((x - centre) / half) in powers of x
    coefficients = [mp.mpf(0)] * (degree + 1)
    for k, c in enumerate(monomials):
        for j in range(k + 1):
            term = mp.binomial(k, j) * (-mp.mpf(centre)) ** (k - j) / mp.mpf(half) ** k
            coefficients[j] += mp.mpf(str(c)) * term
    return best[0], coefficients


if __name__ == "__main__":
    for name, what in FITS.items():
        error, coefficients = fit(*what)
        rounded = ", ".join(f"{np.float32(float(c)):.9g}f" for c in coefficients)
        print(f"{name:12} {error:.1e}  {rounded}")
