// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// Independent chains of fused multiply-adds, all in registers; gives back a value so that none of it can be left out.
inline float peakLoop() {
  typedef float Vector __attribute__((vector_size(DS_VECTOR_BYTES)));
  constexpr int count = DS_VECTOR_BYTES == 64 ? 28 : 14; // what fits the registers
  Vector x[count];
  for (int i = 0; i < count; ++i)
    x[i] = Vector{} + float(i);
  const Vector a = Vector{} + 0.9999f, b = Vector{} + 1e-4f;
  for (int64_t round = 0; round < bench::rounds * bench::chains / count; ++round) {
#pragma GCC unroll 28
    for (int i = 0; i < count; ++i)
      x[i] = x[i] * a + b;
  }
  float sum = 0;
  for (int i = 0; i < count; ++i)
    sum += x[i][0];
  return sum;
}
