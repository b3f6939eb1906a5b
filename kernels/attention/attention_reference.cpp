// attention: the scores of a row at a time, in float64.
#include "kernels/attention/attention_rows.h"

namespace ds::kernels {

namespace {

template <typename T> class AttentionReference : public Kernel {
public:
  explicit AttentionReference(const AttentionCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    const AttentionOperands apart = call_.apart(operands);
    const auto *v = static_cast<const T *>(apart[2]);
    auto *out = static_cast<T *>(apart[call_.next]), *lse = static_cast<T *>(apart[call_.next + 1]);
    const AttentionRows<T> rows{call_, static_cast<const T *>(apart[0]), static_cast<const T *>(apart[1]),
                                call_.masked ? apart[3] : nullptr};
    for (int64_t head = 0; head < call_.batch * call_.heads; ++head) {
      const HeadRows vRows = call_.vRows(call_.groupOf(head)), outRows = call_.outRows(head);
      for (int64_t query = 0; query < call_.queries; ++query) {
        const double total = rows.logSum(head, query);
        lse[head * call_.queries + query] = T(total);
        for (int64_t c = 0; c < call_.columns; ++c) {
          double sum = 0;
          for (int64_t key = 0; key < call_.keys; ++key)
            sum += std::exp(rows.score(head, query, key) - total) * double(v[vRows.at(key) + c]);
          out[outRows.at(query) + c] = T(sum);
        }
      }
    }
    return Status::success();
  }

private:
  AttentionCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeAttentionReference(const Invocation &invocation, const BuildOptions &) {
  const AttentionCall call{Call(invocation)};
  return makeByFloat<AttentionReference>(call.dtype, call);
}

std::unique_ptr<Kernel> makePackedAttentionReference(const Invocation &invocation, const BuildOptions &options) {
  return makeAttentionReference(invocation, options);
}

} // namespace ds::kernels
