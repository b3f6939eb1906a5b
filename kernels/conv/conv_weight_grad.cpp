// conv_weight_grad: dw[m, c, k] = sum over n, o of dy[n, m, o] * x[n, c, o * strides + k * dilations - low]
//
// A piece is some taps of a group and a chunk of all samples' blocks of places: dw = dy [filters, places] * (windows of
// x)^T [places, taps], the windows gathered into the worker's slot. The chunks follow from the shape, one worker sums a
// chunk in order, and the chunks are then added in order, so the bits do not depend on the number of workers.
// torch.nn.grad.conv2d_weight.
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

/// Elements of one piece of the last sum.
constexpr int64_t sumGrain = 4096;

template <typename T> class ConvWeightGrad : public Kernel {
public:
  ConvWeightGrad(const ConvCall &call, const ConvBlocks &blocks, const ConvWorkspace &workspace)
      : call_(call), workspace_(workspace), taps_(blocks.weightTaps()), places_(blocks.weightPlaces()),
        chunks_(blocks.weightChunks()) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const int64_t weights = call_.wOffset(call_.groups), across = piecesOf(call_.taps(), taps_);
    void *workspace = call_.workspace.at(operands);
    T *dw = static_cast<T *>(operands[2]), *sums = chunks_ > 1 ? workspace_.shared<T>(workspace) : dw;
    std::atomic<bool> done = true;
    parallelFor(
        context, chunks_ * call_.groups * across,
        [&](int64_t piece, int worker) {
          const int64_t chunk = piece / (call_.groups * across);
          if (!sumChunk(operands, piece / across % call_.groups, piece % across * taps_, chunk,
                        workspace_.gathered<T>(workspace, worker), sums + chunk * weights,
                        workspace_.scratch(workspace, worker)))
            done = false;
        },
        workspace_.concurrency());
    if (chunks_ > 1)
      parallelFor(context, piecesOf(weights, sumGrain), [&](int64_t piece, int) {
        const int64_t first = piece * sumGrain;
        addPieces_(sums + first, chunks_, weights, dw + first, std::min(sumGrain, weights - first));
      });
    return done ? Status::success() : Status::failure("no memory was left for a convolution's gradient");
  }

private:
  /// The taps from `tap` on of a group over the blocks [chunk * all / chunks, (chunk + 1) * all / chunks).
  bool sumChunk(std::span<void *const> operands, int64_t group, int64_t tap, int64_t chunk, T *windows, T *dw,
                Scratch scratch) const {
    const int64_t outputs = call_.window.outputs(), taps = std::min(taps_, call_.taps() - tap);
    const int64_t blocks = piecesOf(outputs, places_), all = call_.samples * blocks;
    const int64_t begin = chunk * all / chunks_, end = (chunk + 1) * all / chunks_;
    const bool pointwise = call_.isPointwise();
    for (int64_t block = begin; block < end; ++block) {
      const int64_t sample = block / blocks, place = block % blocks * places_;
      const int64_t places = std::min(places_, outputs - place);
      const auto *dy = static_cast<const T *>(operands[0]) + call_.yOffset(sample, group) + place;
      const auto *x = static_cast<const T *>(operands[1]) + call_.xOffset(sample, group);
      if (!pointwise)
        gather_(call_.window, x, tap, taps, place, places, windows);
      const T *right = pointwise ? x + tap * outputs + place : windows;
      if (!multiply(Gemm<T>{dy, right, dw + call_.wOffset(group) + tap, call_.filters, taps, places, outputs,
                            pointwise ? outputs : places, call_.taps(), false, true, block > begin},
                    scratch))
        return false;
    }
    return true;
  }

  ConvCall call_;
  ConvWorkspace workspace_;
  int64_t taps_, places_, chunks_; ///< of a piece; gathered at a time; partial sums
  decltype(&baseline::gatherWindows<T>) gather_ = DS_BEST(gatherWindows<T>);
  decltype(&baseline::addPieces<T>) addPieces_ = DS_BEST(addPieces<T>);
};

} // namespace

std::unique_ptr<Kernel> makeConvWeightGrad(const Invocation &invocation, const BuildOptions &options) {
  const ConvWeightGradCall call{Call(invocation)};
  const auto &operands = invocation.operands;
  const ConvBlocks blocks(operands[1], operands[2], operands[0]);
  return makeConvolution<ConvWeightGrad>(call, blocks,
                                         {blocks.sharedBytes(), blocks.weightBytes(), blocks.weightTileBytes()},
                                         options, makeConvWeightGradDirect);
}

} // namespace ds::kernels
