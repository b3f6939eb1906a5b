"""The k-th collective of one rank meets the k-th of the other, whatever they are meant for."""
import numpy

first, second = numpy.full(4, 1.0), numpy.full(4, 10.0)  # two gradients; both ranks have the same


def reduce(order_of_rank_1):
    return {name: mine + other for (name, mine), other in zip({"first": first, "second": second}.items(), order_of_rank_1)}


print(f"wrong: the first gradient summed over two ranks {reduce([second, first])['first'][0]:.0f}")
print(f"right: the first gradient summed over two ranks {reduce([first, second])['first'][0]:.0f}")
