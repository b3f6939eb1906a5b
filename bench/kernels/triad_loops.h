// Included by ForEachIsa.h into a namespace per instruction set; not a header of its own.

/// McCalpin's STREAM, triad.
inline void triadRun(double *a, const double *b, const double *c, int64_t n) {
  DS_INDEPENDENT
  for (int64_t i = 0; i < n; ++i)
    a[i] = b[i] + scale * c[i];
}

/// With stores that read no line first and leave none in the caches; `a` lies at a multiple of a vector's bytes.
inline void triadStreamed(double *a, const double *b, const double *c, int64_t n) {
  int64_t i = 0;
#if defined(__x86_64__)
#if DS_VECTOR_BYTES == 64
  for (; i + 8 <= n; i += 8)
    _mm512_stream_pd(a + i, _mm512_loadu_pd(b + i) + scale * _mm512_loadu_pd(c + i));
#elif DS_VECTOR_BYTES == 32
  for (; i + 4 <= n; i += 4)
    _mm256_stream_pd(a + i, _mm256_loadu_pd(b + i) + scale * _mm256_loadu_pd(c + i));
#else
  for (; i + 2 <= n; i += 2)
    _mm_stream_pd(a + i, _mm_loadu_pd(b + i) + scale * _mm_loadu_pd(c + i));
#endif
  _mm_sfence();
#endif
  for (; i < n; ++i)
    a[i] = b[i] + scale * c[i];
}
