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
    const AttentionOperands apart = call_.apart(operands);
    const auto read = [&](size_t i) { return static_cast<const T *>(apart[i]); };
    const size_t n = call_.next;
    const AttentionRows<T> rows{call_, read(1), read(2), call_.masked ? apart[4] : nullptr};
    std::fill(dk_.begin(), dk_.end(), 0.0);
    std::fill(dv_.begin(), dv_.end(), 0.0);
    for (int64_t head = 0; head < call_.batch * call_.heads; ++head)
      for (int64_t query = 0; query < call_.queries; ++query)
        row(rows, head, query, read(0), read(3), read(n), double(read(n + 1)[head * call_.queries + query]),
            static_cast<T *>(apart[n + 2]));
    for (int64_t group = 0; group < call_.batch * call_.groups; ++group)
      for (int64_t key = 0; key < call_.keys; ++key) {
        const int64_t row = group * call_.keys + key;
        narrow(dk_, row * call_.depth, call_.depth, static_cast<T *>(apart[n + 3]) + call_.kRows(group).at(key));
        narrow(dv_, row * call_.columns, call_.columns, static_cast<T *>(apart[n + 4]) + call_.vRows(group).at(key));
      }
    return Status::success();
  }

private:
  void row(const AttentionRows<T> &rows, int64_t head, int64_t query, const T *dout, const T *v, const T *out,
           double lse, T *dq) {
    const int64_t depth = call_.depth, columns = call_.columns;
    const int64_t atQ = call_.qRows(head).at(query), atOut = call_.outRows(head).at(query);
    const int64_t group = call_.groupOf(head);
    double delta = 0;
    for (int64_t c = 0; c < columns; ++c)
      delta += double(out[atOut + c]) * double(dout[atOut + c]);
    std::fill(dq_.begin(), dq_.end(), 0.0);
    double total = 0; // 1, but where lse has no digits for it
    for (int64_t key = 0; key < call_.keys; ++key)
      total += std::exp(rows.score(head, query, key) - lse);
    for (int64_t key = 0; key < call_.keys; ++key) {
      const int64_t atK = call_.kRows(group).at(key), atV = call_.vRows(group).at(key), row = group * call_.keys + key;
      const double p = total == 0 ? 0 : std::exp(rows.score(head, query, key) - lse) / total;
      double dp = 0;
      for (int64_t c = 0; c < columns; ++c) {
        dp += double(dout[atOut + c]) * double(v[atV + c]);
        dv_[size_t(row * columns + c)] += p * double(dout[atOut + c]);
      }
      const double ds = p * (dp - delta) * call_.scale;
      for (int64_t l = 0; l < depth; ++l) {
        dq_[size_t(l)] += ds * double(rows.k[atK + l]);
        dk_[size_t(row * depth + l)] += ds * double(rows.q[atQ + l]);
      }
    }
    for (int64_t l = 0; l < depth; ++l)
      dq[atQ + l] = T(dq_[size_t(l)]);
  }

  static void narrow(const std::vector<double> &from, int64_t first, int64_t count, T *to) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = T(from[size_t(first + i)]);
  }

  AttentionCall call_;
  std::vector<double> dk_, dv_; // [batch, groups, keys, depth or columns]
  std::vector<double> dq_;
};

} // namespace

std::unique_ptr<Kernel> makeAttentionGradReference(const Invocation &invocation, const BuildOptions &) {
  const AttentionCall call{Call(invocation)};
  return makeByFloat<AttentionGradReference>(call.dtype, call);
}

std::unique_ptr<Kernel> makePackedAttentionGradReference(const Invocation &invocation, const BuildOptions &options) {
  return makeAttentionGradReference(invocation, options);
}

} // namespace ds::kernels
