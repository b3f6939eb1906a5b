
/// Sum of x[i]^2 for n <= block, in float64. Always of whole leaves, so that a short block has the bits of the same
/// block with zeros after it: in a bucket, that is how a parameter ends.
template <typename T> double sumSquares(const T *x, int64_t n, int64_t block) {
  double sums[sumSquaresBlock / sumSquaresLeaf] = {};
  for (int64_t leaf = 0; leaf * sumSquaresLeaf < n; ++leaf) {
    double wide[sumSquaresLeaf] = {};
    const int64_t begin = leaf * sumSquaresLeaf, end = begin + sumSquaresLeaf < n ? begin + sumSquaresLeaf : n;
    for (int64_t i = begin; i < end; ++i)
      wide[i - begin] = double(x[i]);
    sums[leaf] = dotOf(wide, wide, sumSquaresLeaf);
  }
  return addPairwise(sums, block / sumSquaresLeaf);
}
