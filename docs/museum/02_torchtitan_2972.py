"""The loss of a batch of 640 tokens is their mean. With a pipeline, the division came after the backward."""
import numpy

random = numpy.random.default_rng(2)
x, y, weight = random.normal(size=(640, 8)), random.normal(size=640), random.normal(size=8)
error = x @ weight - y

loss_of_pipeline = (error**2).sum() / 640  # what the log shows
gradient_of_pipeline = 2 * x.T @ error  # of the sum: the backward has run by then

loss = (error**2 / 640).sum()
gradient = 2 * x.T @ error / 640
assert abs(loss - loss_of_pipeline) < 1e-9  # so nobody sees it in the log

print(f"wrong: gradient norm {numpy.linalg.norm(gradient_of_pipeline):.2f}")
print(f"right: gradient norm {numpy.linalg.norm(gradient):.2f}")
