"""A tied weight of 10 rows over 4 ranks: 3, 3, 3 and 1. The last rank's update lands in a padded copy that nobody reads."""
import numpy

rows, ranks = 10, 4
each = -(-rows // ranks)  # 3
weight, gradient = numpy.zeros(rows), numpy.ones(rows)

shards = [weight[r * each:(r + 1) * each] for r in range(ranks)]  # views
for r, shard in enumerate(shards):
    if len(shard) < each:
        shard = numpy.pad(shard, (0, each - len(shard)))  # a copy
    shard -= 0.1 * numpy.resize(gradient, len(shard))

print(f"wrong: rows that were updated {(weight != 0).sum()}")
print(f"right: rows that were updated {rows}")
