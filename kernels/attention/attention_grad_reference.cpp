// attention_grad: one score at a time, in float64.
#include "kernels/attention/attention_rows.h"

namespace ds::kernels {

namespace {

template <typename T> class AttentionGradReference : public Kernel {
public:
  explicit AttentionGradReference(const AttentionCall &call)
      : call_(call), dk_(size_t(call.batch * call.groups * call.keys * call.depth)),
        dv_(size_t(call.batch * call.groups * call.keys * call.columns)), dq_(size_t(call.depth)) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const auto read = [&](size_t i) { return static_cast<const T *>(operands[i]); };
    const size_t n = call_.next;
    const AttentionRows<T> rows{call_, read(1), read(2), call_.masked ? operands[4] : nullptr};
    std::fill(dk_.begin(), dk_.end(), 0.0);
    std::fill(dv_.begin(), dv_.end(), 0.0);
    for (int64_t head = 0; head < call_.batch * call_.heads; ++head)
      for (int64_t query = 0; query < call_.queries; ++query)
        row(rows, head, query, read(0), read(3), read(n), double(read(n + 1)[head * call_.queries + query]),
            static_cast<T *>(operands[n + 2]));
    for (size_t i = 0; i < dk_.size(); ++i)
      static_cast<T *>(operands[n + 3])[i] = T(dk_[i]);
    for (size_t i = 0; i < dv_.size(); ++i)
      static_cast<T *>(operands[n + 4])[i] = T(dv_[i]);
    return Status::success();
  }

private:
  void row(const AttentionRows<T> &rows, int64_t head, int64_t query, const T *dout, const T *v, const T *out,
           double lse, T *dq) {
    const int64_t depth = call_.depth, columns = call_.columns;
    const int64_t atQ = rows.queryAt(head, query, depth), atOut = rows.queryAt(head, query, columns);
    double delta = 0;
    for (int64_t c = 0; c < columns; ++c)
      delta += double(out[atOut + c]) * double(dout[atOut + c]);
    std::fill(dq_.begin(), dq_.end(), 0.0);
    for (int64_t key = 0; key < call_.keys; ++key) {
      const int64_t atK = rows.keyAt(head, key, depth), atV = rows.keyAt(head, key, columns);
      const double p = std::exp(rows.score(head, query, key) - lse);
      double dp = 0;
      for (int64_t c = 0; c < columns; ++c) {
        dp += double(dout[atOut + c]) * double(v[atV + c]);
        dv_[size_t(atV + c)] += p * double(dout[atOut + c]);
      }
      const double ds = p * (dp - delta) * call_.scale;
      for (int64_t l = 0; l < depth; ++l) {
        dq_[size_t(l)] += ds * double(rows.k[atK + l]);
        dk_[size_t(atK + l)] += ds * double(rows.q[atQ + l]);
      }
    }
    for (int64_t l = 0; l < depth; ++l)
      dq[atQ + l] = T(dq_[size_t(l)]);
  }

  AttentionCall call_;
  std::vector<double> dk_, dv_, dq_;
};

} // namespace

std::unique_ptr<Kernel> makeAttentionGradReference(const Invocation &invocation, const BuildOptions &) {
  const AttentionCall call{Call(invocation)};
  return makeByFloat<AttentionGradReference>(call.dtype, call);
}

} // namespace ds::kernels
