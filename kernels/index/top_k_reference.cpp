// top_k: for each place the first element that is not taken yet.
#include "kernels/Numbers.h"
#include "kernels/index/search_call.h"

#include <algorithm>

namespace ds::kernels {

namespace {

template <typename T> class TopKReference : public Kernel {
public:
  explicit TopKReference(const TopKCall &call) : call_(call) {}

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    for (int64_t r = 0; r < call_.rows; ++r) {
      const T *x = static_cast<const T *>(operands[0]) + r * call_.length;
      int64_t *indices = static_cast<int64_t *>(operands[2]) + r * call_.k;
      for (int64_t j = 0; j < call_.k; ++j) {
        int64_t best = -1;
        for (int64_t i = 0; i < call_.length; ++i)
          if (std::find(indices, indices + j, i) == indices + j && (best < 0 || call_.before(x, i, best)))
            best = i;
        indices[j] = best;
        static_cast<T *>(operands[1])[r * call_.k + j] = x[best];
      }
    }
    return Status::success();
  }

private:
  TopKCall call_;
};

} // namespace

std::unique_ptr<Kernel> makeTopKReference(const Invocation &invocation, const BuildOptions &) {
  const TopKCall call{Call(invocation)};
  return withType(call.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<TopKReference<decltype(zero)>>(call);
  });
}

} // namespace ds::kernels
