// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// The blocked product of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", TOMS 2008): panels
// of A and B are copied so that the inner kernel reads both front to back, and a tile of C stays in registers.

/// Rows and columns of C that the inner kernel keeps in registers: as many accumulators as leave two registers for B
/// and one for A.
template <typename T> struct Tile {
  typedef T Vector __attribute__((vector_size(DS_VECTOR_BYTES)));
  typedef T Loose __attribute__((vector_size(DS_VECTOR_BYTES), aligned(alignof(T)), may_alias));
  static constexpr int lanes = DS_VECTOR_BYTES / int(sizeof(T));
  static constexpr int vectors = 2;
  static constexpr int rows = DS_VECTOR_BYTES == 64 ? 14 : 6;
  static constexpr int cols = vectors * lanes;
};

/// out[rows, cols] += or = a [depth, Tile::rows] * b [depth, Tile::cols], both packed. `soon` is what a later tile will
/// read: depth cache lines of it are fetched into the second-level cache meanwhile.
template <typename T>
void multiplyTile(const T *__restrict a, const T *__restrict b, int64_t depth, T *out, int64_t stride, int rows,
                  int cols, bool add, const T *bias, const char *soon) {
  using K = Tile<T>;
  using Vector = typename K::Vector;
  using Loose = typename K::Loose;
  // The tile of C is far away in memory; it arrives while the products are summed.
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < K::cols; j += 64 / int(sizeof(T)))
      __builtin_prefetch(out + i * stride + j, 1);
  Vector sum[K::rows][K::vectors] = {};
  for (int64_t l = 0; l < depth; ++l) {
    __builtin_prefetch(soon + l * 64, 0, 2);
    Vector right[K::vectors];
#pragma GCC unroll 2
    for (int v = 0; v < K::vectors; ++v)
      right[v] = *reinterpret_cast<const Loose *>(b + l * K::cols + v * K::lanes);
#pragma GCC unroll 14
    for (int i = 0; i < K::rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < K::vectors; ++v)
        sum[i][v] += right[v] * a[l * K::rows + i];
  }
  if (rows == K::rows && cols == K::cols) {
#pragma GCC unroll 14
    for (int i = 0; i < K::rows; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < K::vectors; ++v) {
        auto *to = reinterpret_cast<Loose *>(out + i * stride + v * K::lanes);
        Vector value = sum[i][v];
        if (add)
          value += *to;
        if (bias)
          value += *reinterpret_cast<const Loose *>(bias + v * K::lanes);
        *to = value;
      }
    return;
  }
  alignas(64) T edge[K::rows * K::cols];
#pragma GCC unroll 14
  for (int i = 0; i < K::rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < K::vectors; ++v)
      *reinterpret_cast<Loose *>(edge + i * K::cols + v * K::lanes) = sum[i][v];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) {
      T value = edge[i * K::cols + j];
      if (add)
        value += out[i * stride + j];
      if (bias)
        value += bias[j];
      out[i * stride + j] = value;
    }
}

/// to[l, i] = from[i, l] for a square of 16 bytes a side; strides between rows.
template <typename T> DS_INLINE void transposeSquare(const T *from, int64_t stride, T *to, int64_t toStride) {
  constexpr int side = 16 / int(sizeof(T));
  typedef T Row __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  typedef T Value __attribute__((vector_size(16)));
  const auto row = [&](int i) { return Value(*reinterpret_cast<const Row *>(from + i * stride)); };
  const auto put = [&](int l, Value value) { *reinterpret_cast<Row *>(to + l * toStride) = value; };
  if constexpr (side == 2) {
    put(0, __builtin_shufflevector(row(0), row(1), 0, 2));
    put(1, __builtin_shufflevector(row(0), row(1), 1, 3));
  } else {
    const Value low01 = __builtin_shufflevector(row(0), row(1), 0, 4, 1, 5);
    const Value high01 = __builtin_shufflevector(row(0), row(1), 2, 6, 3, 7);
    const Value low23 = __builtin_shufflevector(row(2), row(3), 0, 4, 1, 5);
    const Value high23 = __builtin_shufflevector(row(2), row(3), 2, 6, 3, 7);
    put(0, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    put(1, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    put(2, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    put(3, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
  }
}

/// One whole panel of rows that are contiguous along depth. A cache line of a row is used up before the next row's is
/// touched: rows a multiple of 4 KiB apart share a few places of the first-level cache.
template <typename T, int width> void packTransposed(const T *x, int64_t stride, int64_t depth, T *packed) {
  constexpr int side = 16 / int(sizeof(T)), line = 64 / int(sizeof(T));
  int64_t l = 0;
  for (; l + line <= depth; l += line)
    for (int group = 0; group < width; group += side) {
      const int i = group + side <= width ? group : width - side; // the last group may overlap the one before
      for (int part = 0; part < line; part += side)
        transposeSquare(x + i * stride + l + part, stride, packed + (l + part) * width + i, width);
    }
  for (; l < depth; ++l)
    for (int i = 0; i < width; ++i)
      packed[l * width + i] = x[i * stride + l];
}

/// Some whole panels of columns that are contiguous: along each row in turn, since rows may be pages apart.
template <typename T, int width>
void packContiguous(const T *x, int64_t depthStride, int64_t panels, int64_t depth, T *packed) {
  for (int64_t l = 0; l < depth; ++l)
    for (int64_t p = 0; p < panels; ++p)
      for (int i = 0; i < width; ++i)
        packed[(p * depth + l) * width + i] = x[l * depthStride + p * width + i];
}

/// Copies x [count, depth] (element (i, l) at i * stride + l * depthStride) into panels [ceil(count / width)]
/// [depth][width]; a last panel's missing columns become 0.
template <typename T, int width>
void packPanels(const T *x, int64_t stride, int64_t depthStride, int64_t count, int64_t depth, T *packed) {
  const int64_t whole = count / width;
  if (stride == 1) {
    packContiguous<T, width>(x, depthStride, whole, depth, packed);
  } else {
    for (int64_t p = 0; p < whole; ++p)
      packTransposed<T, width>(x + p * width * stride, stride, depth, packed + p * width * depth);
  }
  const int64_t rest = count - whole * width;
  const T *from = x + whole * width * stride;
  packed += whole * width * depth;
  for (int64_t l = 0; rest > 0 && l < depth; ++l)
    for (int64_t i = 0; i < width; ++i)
      packed[l * width + i] = i < rest ? from[i * stride + l * depthStride] : T(0);
}

template <typename T>
void packLeft(const T *x, int64_t stride, int64_t depthStride, int64_t count, int64_t depth, T *packed) {
  packPanels<T, Tile<T>::rows>(x, stride, depthStride, count, depth, packed);
}

template <typename T>
void packRight(const T *x, int64_t stride, int64_t depthStride, int64_t count, int64_t depth, T *packed) {
  packPanels<T, Tile<T>::cols>(x, stride, depthStride, count, depth, packed);
}

/// c [rows, cols] += or = packed a [rows, depth] * packed b [depth, cols] (+ bias).
template <typename T>
void multiplyBlock(const T *a, const T *b, int64_t rows, int64_t cols, int64_t depth, T *c, int64_t stride, bool add,
                   const T *bias) {
  using K = Tile<T>;
  const int64_t panelLines = depth * K::cols * int64_t(sizeof(T)) / 64; // of b
  for (int64_t j = 0; j < cols; j += K::cols)
    for (int64_t i = 0; i < rows; i += K::rows) {
      // The first tiles of a column of tiles fetch the next column's panel of b, the others the next panel of a.
      const int64_t fetched = i / K::rows * depth;
      const T *soon = a;
      if (fetched < panelLines && j + K::cols < cols)
        soon = b + (j + K::cols) * depth + fetched * 64 / int64_t(sizeof(T));
      else if (i + K::rows < rows)
        soon = a + (i + K::rows) * depth;
      multiplyTile<T>(a + i * depth, b + j * depth, depth, c + i * stride + j, stride,
                      int(rows - i < K::rows ? rows - i : K::rows), int(cols - j < K::cols ? cols - j : K::cols), add,
                      bias ? bias + j : nullptr, reinterpret_cast<const char *>(soon));
    }
}

template <typename T> void tileShape(int64_t &rows, int64_t &cols) {
  rows = Tile<T>::rows;
  cols = Tile<T>::cols;
}
