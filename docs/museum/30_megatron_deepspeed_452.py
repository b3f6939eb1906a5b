"""A key of the configuration that never reaches the function it is for: its default holds, and nothing says so."""
import numpy


def clip(gradient, max_norm=1.0):
    return gradient * min(1.0, max_norm / numpy.linalg.norm(gradient))


config, gradient = {"gradient_clipping": 0.1}, numpy.ones(16)
print(f"wrong: norm after clipping at 0.1: {numpy.linalg.norm(clip(gradient)):.2f}")
print(f"right: norm after clipping at 0.1: {numpy.linalg.norm(clip(gradient, config['gradient_clipping'])):.2f}")
