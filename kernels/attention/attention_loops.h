// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// A tile holds scores [rows, cols], attentionTile elements from row to row.

/// Scores become scale * score + mask; hidden ones -inf.
template <typename T> void maskTile(T *tile, int64_t rows, int64_t cols, T scale, const ScoreMask<T> &mask) {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < rows; ++r) {
    T *row = tile + r * attentionTile;
    const int64_t visible = mask.visible + r < cols ? mask.visible + r : cols;
    const T *added = mask.added ? mask.added + r * mask.rowStride : nullptr;
    const uint8_t *seen = mask.seen ? mask.seen + r * mask.rowStride : nullptr;
    if (added && mask.colStride == 1) {
      DS_INDEPENDENT
      for (int64_t c = 0; c < visible; ++c)
        row[c] = row[c] * scale + added[c];
    } else if (seen && mask.colStride == 1) {
      DS_INDEPENDENT
      for (int64_t c = 0; c < visible; ++c)
        row[c] = seen[c] ? row[c] * scale : hidden;
    } else { // one mask for the whole row
      const T all = visible <= 0 ? T(0) : added ? *added : seen && !*seen ? hidden : T(0);
      DS_INDEPENDENT
      for (int64_t c = 0; c < visible; ++c)
        row[c] = row[c] * scale + all;
    }
    for (int64_t c = visible < 0 ? 0 : visible; c < cols; ++c)
      row[c] = hidden;
  }
}

/// One step of the online softmax (Milakov and Gimelshein, 2018): scores become exp(score - maximum), and what earlier
/// tiles left in sum [rows] and out [rows, columns], `stride` from row to row, is brought to the new maximum [rows].
template <typename T>
void softenTile(T *tile, int64_t rows, int64_t cols, T *maximum, double *sum, T *out, int64_t columns, int64_t stride) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < rows; ++r) {
    T *row = tile + r * attentionTile;
    const T before = maximum[r], here = maxOf(row, cols), now = here > before || here != here ? here : before;
    if (now == none) { // this row sees nothing yet
      for (int64_t c = 0; c < cols; ++c)
        row[c] = 0;
      continue;
    }
    DS_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c)
      row[c] = vectorExp(row[c] - now);
    const T factor = before == none ? T(0) : T(std::exp(double(before - now)));
    sum[r] = sum[r] * double(factor) + sumOf(row, cols);
    maximum[r] = now;
    if (factor == 1)
      continue;
    DS_INDEPENDENT
    for (int64_t c = 0; c < columns; ++c)
      out[r * stride + c] *= factor;
  }
}

/// Divides the rows of out by their sums; lse = log sum exp, +inf for a row that saw nothing.
template <typename T>
void finishRows(int64_t rows, const T *maximum, const double *sum, T *out, int64_t columns, int64_t stride, T *lse) {
  for (int64_t r = 0; r < rows; ++r) {
    const bool nothing = maximum[r] == -std::numeric_limits<T>::infinity();
    const T factor = nothing ? T(0) : T(1 / sum[r]);
    lse[r] = nothing ? std::numeric_limits<T>::infinity() : T(double(maximum[r]) + std::log(sum[r]));
    DS_INDEPENDENT
    for (int64_t c = 0; c < columns; ++c)
      out[r * stride + c] *= factor;
  }
}

/// Masked scores become probabilities.
template <typename T> void probabilitiesOf(T *tile, int64_t rows, int64_t cols, const T *lse) {
  for (int64_t r = 0; r < rows; ++r) {
    T *row = tile + r * attentionTile;
    DS_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c)
      row[c] = vectorExp(row[c] - lse[r]);
  }
}

/// deltas [rows] = the dot products of the rows of out and dout, `stride` from row to row.
template <typename T>
void rowDots(const T *out, const T *dout, int64_t rows, int64_t columns, int64_t stride, T *deltas) {
  for (int64_t r = 0; r < rows; ++r)
    deltas[r] = T(dotOf(out + r * stride, dout + r * stride, columns));
}

/// Gradients of probabilities become those of the products of q and k.
template <typename T>
void gradientTile(T *gradients, const T *probabilities, int64_t rows, int64_t cols, const T *deltas, T scale) {
  for (int64_t r = 0; r < rows; ++r) {
    T *row = gradients + r * attentionTile;
    const T *p = probabilities + r * attentionTile;
    DS_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c)
      row[c] = p[c] * (row[c] - deltas[r]) * scale;
  }
}
