// conv_input_grad: dx[n, c, i] = sum over m, k, o with i = o * strides + k * dilations - low of dy[n, m, o] * w[m, c,
// k]
//
// A piece is some channels of a sample's group: windows [taps, places] = w^T [taps, filters] * dy [filters, places] in
// the worker's slot, some places at a time, then added to dx at their places. One worker adds in order, so the bits do
// not depend on the number of workers. torch.nn.grad.conv2d_input.
#include "kernels/conv/conv_call.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_workspace.h"
#include "kernels/cpu/Gemm.h"

#include <algorithm>
#include <atomic>

#define DS_LOOPS "kernels/conv/conv_loops.h"
#include "kernels/cpu/ForEachIsa.h"

namespace ds::kernels {

namespace {

template <typename T> class ConvInputGrad : public Kernel {
public:
  ConvInputGrad(const ConvCall &call, const ConvBlocks &blocks, const ConvWorkspace &workspace)
      : call_(call), workspace_(workspace), channels_(blocks.inputChannels()),
        places_(call.isPointwise() ? call.window.outputs() : blocks.inputPlaces()) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t parts = piecesOf(call_.channels, channels_);
    void *workspace = call_.workspace.at(operands);
    std::atomic<bool> done = true;
    parallelFor(
        context, call_.samples * call_.groups * parts,
        [&](int64_t piece, int worker) {
          if (!carryBack(operands, piece / parts, piece % parts * channels_, workspace_.gathered<T>(workspace, worker),
                         workspace_.scratch(workspace, worker)))
            done = false;
        },
        workspace_.concurrency());
    return done ? Status::success() : Status::failure("no memory was left for a convolution's gradient");
  }

private:
  /// dx of the channels from `channel` on of one sample's group; `image` counts both.
  bool carryBack(std::span<void *const> operands, int64_t image, int64_t channel, T *windows, Scratch scratch) const {
    const Window &window = call_.window;
    const int64_t outputs = window.outputs(), count = std::min(channels_, call_.channels - channel);
    const int64_t taps = count * window.windows();
    const auto *dy = static_cast<const T *>(operands[0]) + call_.yOffset(0, image);
    const auto *w =
        static_cast<const T *>(operands[1]) + call_.wOffset(image % call_.groups) + channel * window.windows();
    T *dx = static_cast<T *>(operands[2]) + call_.xOffset(0, image) + channel * window.inputs();
    if (call_.isPointwise())
      return multiply(
          Gemm<T>{w, dy, dx, taps, outputs, call_.filters, call_.taps(), outputs, outputs, true, false, false},
          scratch);
    std::fill_n(dx, count * window.inputs(), T(0));
    for (int64_t place = 0; place < outputs; place += places_) {
      const int64_t places = std::min(places_, outputs - place);
      if (!multiply(Gemm<T>{w, dy + place, windows, taps, places, call_.filters, call_.taps(), outputs, places, true,
                            false, false},
                    scratch))
        return false;
      add_(window, windows, taps, place, places, dx);
    }
    return true;
  }

  ConvCall call_;
  ConvWorkspace workspace_;
  int64_t channels_, places_; ///< of a piece; added at a time
  decltype(&baseline::addWindows<T>) add_ = DS_BEST(addWindows<T>);
};

} // namespace

std::unique_ptr<Kernel> makeConvInputGrad(const Invocation &invocation, const BuildOptions &options) {
  const ConvInputGradCall call{Call(invocation)};
  const auto &operands = invocation.operands;
  const ConvBlocks blocks(operands[2], operands[1], operands[0]);
  return makeConvolution<ConvInputGrad>(call, blocks, {0, blocks.inputBytes(), blocks.inputTileBytes()}, options,
                                        makeConvInputGradDirect);
}

} // namespace ds::kernels
