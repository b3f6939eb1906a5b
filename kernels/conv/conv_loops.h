// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.
//
// Gathering of windows for products of matrices, and the direct loops for groups of few filters. A tap is a channel and
// an element of the window, a place an element of a filter's result.

/// body(row of places, its first place, the places of it) for the places [first, first + count), row by row; `row` has
/// the first two coordinates.
template <typename Body> DS_INLINE void forEachRow(const Window &w, int64_t first, int64_t count, Body body) {
  const int64_t width = w.output[2];
  for (int64_t place = first; place < first + count;) {
    const int64_t row = place / width, column = place - row * width;
    const int64_t end = column + (first + count - place) < width ? column + (first + count - place) : width;
    body(row / w.output[1], row % w.output[1], column, end, place - first);
    place += end - column;
  }
}

/// What tap `tap` sees of one sample's channels x at `count` places from `first` on; zero outside of x.
template <typename T> void tapRow(const Window &w, const T *x, int64_t tap, int64_t first, int64_t count, T *row) {
  const int64_t c = tap / w.windows(), k = tap % w.windows();
  const int64_t kz = k / (w.window[1] * w.window[2]), ki = k / w.window[2] % w.window[1], kj = k % w.window[2];
  const Window::Range inside = w.placesOf(2, kj);
  const int64_t step = w.strides[2];
  forEachRow(w, first, count, [&](int64_t a, int64_t b, int64_t begin, int64_t end, int64_t at) {
    const int64_t z = w.position(0, a, kz), i = w.position(1, b, ki);
    T *to = row + at;
    int64_t from = inside.first < begin ? begin : inside.first, until = inside.end > end ? end : inside.end;
    if (z < 0 || z >= w.input[0] || i < 0 || i >= w.input[1] || from >= until)
      from = until = end;
    for (int64_t j = begin; j < from; ++j)
      to[j - begin] = T(0);
    const T *source = x + ((c * w.input[0] + z) * w.input[1] + i) * w.input[2] + w.position(2, from, kj);
    if (step == 1)
      for (int64_t j = 0; j < until - from; ++j)
        to[from - begin + j] = source[j];
    else
      for (int64_t j = 0; j < until - from; ++j)
        to[from - begin + j] = source[j * step];
    for (int64_t j = until; j < end; ++j)
      to[j - begin] = T(0);
  });
}

/// Windows of x [taps, count places].
template <typename T>
void gatherWindows(const Window &w, const T *x, int64_t firstTap, int64_t taps, int64_t first, int64_t count,
                   T *windows) {
  for (int64_t l = 0; l < taps; ++l)
    tapRow(w, x, firstTap + l, first, count, windows + l * count);
}

/// Adds the windows [taps, count places] of a gradient to dx at their places.
template <typename T>
void addWindows(const Window &w, const T *windows, int64_t taps, int64_t first, int64_t count, T *dx) {
  const int64_t step = w.strides[2];
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t c = tap / w.windows(), k = tap % w.windows();
    const int64_t kz = k / (w.window[1] * w.window[2]), ki = k / w.window[2] % w.window[1], kj = k % w.window[2];
    const Window::Range inside = w.placesOf(2, kj);
    const T *row = windows + tap * count;
    forEachRow(w, first, count, [&](int64_t a, int64_t b, int64_t begin, int64_t end, int64_t at) {
      const int64_t z = w.position(0, a, kz), i = w.position(1, b, ki);
      const int64_t from = inside.first < begin ? begin : inside.first, until = inside.end > end ? end : inside.end;
      if (z < 0 || z >= w.input[0] || i < 0 || i >= w.input[1] || from >= until)
        return;
      const T *source = row + at + (from - begin);
      T *to = dx + ((c * w.input[0] + z) * w.input[1] + i) * w.input[2] + w.position(2, from, kj);
      if (step == 1) {
        DS_INDEPENDENT
        for (int64_t j = 0; j < until - from; ++j)
          to[j] += source[j];
      } else {
        for (int64_t j = 0; j < until - from; ++j)
          to[j * step] += source[j];
      }
    });
  }
}

/// One row of products of a tap and a place: y[j] += weight * x[j * step].
template <typename T> void addTapForward(T weight, const T *x, int64_t step, T *y, int64_t n) {
  if (step == 1) {
    DS_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      y[j] += weight * x[j];
  } else {
    for (int64_t j = 0; j < n; ++j)
      y[j] += weight * x[j * step];
  }
}

/// dx[j * step] += weight * dy[j].
template <typename T> void addTapBackward(T weight, const T *dy, int64_t step, T *dx, int64_t n) {
  if (step == 1) {
    DS_INDEPENDENT
    for (int64_t j = 0; j < n; ++j)
      dx[j] += weight * dy[j];
  } else {
    for (int64_t j = 0; j < n; ++j)
      dx[j * step] += weight * dy[j];
  }
}

/// Sum of dy[j] * x[j * step].
template <typename T> double dotTap(const T *dy, const T *x, int64_t step, int64_t n) {
  if (step == 1)
    return dotOf(dy, x, n);
  double sum = 0;
  for (int64_t j = 0; j < n; ++j)
    sum += double(dy[j]) * double(x[j * step]);
  return sum;
}
