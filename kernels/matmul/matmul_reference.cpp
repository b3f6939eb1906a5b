// matmul: three loops, in float64; the epilogue on the rounded product.
#include "kernels/GeluTanh.h"
#include "kernels/matmul/matmul_call.h"

namespace ds::kernels {

namespace {

template <typename T> class MatmulReference : public Kernel {
public:
  explicit MatmulReference(const MatmulCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const int64_t m = call_.m, n = call_.n, k = call_.k;
    const auto *bias = call_.bias ? static_cast<const T *>(operands[2]) : nullptr;
    for (int64_t batch = 0; batch < call_.batches; ++batch) {
      const T *a = static_cast<const T *>(operands[0]) + call_.matrixOf(call_.aBatchStrides, batch) * m * k;
      const T *b = static_cast<const T *>(operands[1]) + call_.matrixOf(call_.bBatchStrides, batch) * k * n;
      T *c = static_cast<T *>(operands[call_.product()]) + batch * m * n;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = bias ? double(bias[j]) : 0.0;
          for (int64_t l = 0; l < k; ++l)
            sum +=
                double(call_.transA ? a[l * m + i] : a[i * k + l]) * double(call_.transB ? b[j * k + l] : b[l * n + j]);
          c[i * n + j] = T(sum);
        }
    }
    if (call_.epilogue != MatmulEpilogue::None)
      finish(static_cast<const T *>(operands[call_.aux]), static_cast<T *>(operands[call_.c]));
    return Status::success();
  }

private:
  void finish(const T *aux, T *c) const {
    const bool grad = call_.epilogue == MatmulEpilogue::GeluTanhGrad;
    for (int64_t i = 0; i < call_.batches * call_.m * call_.n; ++i)
      c[i] = grad ? T(double(c[i]) * geluTanhSlopeOf(double(aux[i]))) : T(geluTanhOf(double(aux[i])));
  }

  MatmulCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeMatmulReference(const Invocation &invocation, const BuildOptions &) {
  const MatmulCall call{Call(invocation)};
  return makeByFloat<MatmulReference>(call.dtype, call);
}

} // namespace ds::kernels
