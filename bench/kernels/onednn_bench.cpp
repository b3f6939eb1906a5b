// oneDNN's dnnl_sgemm on the same products, each in fixed pieces of 128 x 512 (or one batch), one thread a piece, as a
// kernel of ours would have to call it to give the same bits on any number of threads.
#include "bench/kernels/Bench.h"
#include "bench/kernels/products.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

extern "C" void omp_set_num_threads(int);

namespace ds::kernels::bench {

namespace {

constexpr int64_t pieceRows = 256, pieceCols = 512;

void runPiece(const Product &p, const float *a, const float *b, float *c, int64_t piece) {
  const int64_t across = (p.n + pieceCols - 1) / pieceCols, down = (p.m + pieceRows - 1) / pieceRows;
  const int64_t batch = piece / (across * down), i = piece / across % down * pieceRows, j = piece % across * pieceCols;
  omp_set_num_threads(1);
  dnnl_sgemm(p.transA ? 'T' : 'N', p.transB ? 'T' : 'N', std::min(pieceRows, p.m - i), std::min(pieceCols, p.n - j),
             p.k, 1, a + batch * p.m * p.k + (p.transA ? i : i * p.k), p.transA ? p.m : p.k,
             b + batch * p.k * p.n + (p.transB ? j * p.k : j), p.transB ? p.k : p.n, 0,
             c + batch * p.m * p.n + i * p.n + j, p.n);
}

void runProduct(benchmark::State &state, const Product &p) {
  Operand a(f32({p.batch * p.m * p.k})), b(f32({p.batch * p.k * p.n})), c(f32({p.batch * p.m * p.n}));
  const CallContext context{&workers()};
  const int64_t pieces = p.batch * ((p.n + pieceCols - 1) / pieceCols) * ((p.m + pieceRows - 1) / pieceRows);
  for (auto _ : state)
    parallelFor(context, pieces, [&](int64_t piece, int) {
      runPiece(p, static_cast<float *>(a.data()), static_cast<float *>(b.data()), static_cast<float *>(c.data()),
               piece);
    });
  const double total = flopsOf(p) * double(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(total / 1e9, benchmark::Counter::kIsRate);
  state.counters["share"] = benchmark::Counter(total / limits().flops, benchmark::Counter::kIsRate);
}

} // namespace

void registerOneDnn() {
  for (const Product &product : products)
    benchmark::RegisterBenchmark((std::string("onednn/") + product.name).c_str(),
                                 [product](benchmark::State &state) { runProduct(state, product); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
}

} // namespace ds::kernels::bench
