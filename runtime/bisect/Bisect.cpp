//===- Bisect.cpp - the first tensor on which two plans differ ------------===//
#include "runtime/bisect/Bisect.h"

#include "core/DType.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/bisect/Comparison.h"
#include "runtime/bisect/Correspondence.h"
#include "runtime/bisect/DifferenceText.h"
#include "runtime/bisect/Digest.h"
#include "runtime/bisect/Tensor.h"
#include "runtime/bisect/TensorObservers.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/StepReport.h"
#include "runtime/session/Training.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

/// Shows the variables when a step is done.
class StepWatcher final : public TrainingObserver {
public:
  StepWatcher(const Training &training, const TensorObservers &tensors) : training_(training), tensors_(tensors) {}

  void stepDone(const StepReport &report) noexcept override { show(report.step); }
  void evaluated(const EvaluationReport &) noexcept override {}
  void show(uint64_t stepsDone) const { tensors_.showVariables(training_.plan(), training_.localRanks(), stepsDone); }

private:
  const Training &training_;
  const TensorObservers &tensors_;
};

class Bisection {
public:
  Bisection(const std::string &pathA, const std::string &pathB, const TrainingOptions &options,
            const kernels::KernelRegistry &kernels, const std::atomic<bool> &stop)
      : paths_{pathA, pathB}, options_(options), kernels_(kernels), stop_(stop),
        plans_{plan::readPlan(pathA), plan::readPlan(pathB)}, names_(plans_[0], plans_[1]) {
    for (const int plan : {0, 1})
      if (plans_[plan].shorter_size() > 0)
        throw Error(paths_[plan] + " is a plan for several sizes of " + plans_[plan].dimension() +
                    ", and bisect compares plans for one; compile it for one");
    for (const int plan : {0, 1}) // they write terms of values, which are no values
      if (const uint64_t ranks = plan::axisSize(plans_[plan].world(), "tensor"); ranks > 1)
        throw Error(paths_[plan] + " is a plan for " + std::to_string(ranks) +
                    " tensor ranks, and bisect compares plans whose ranks have whole values; compile it with "
                    "deepstatic.tensor_parallel.size 1");
  }

  BisectResult result() {
    TensorPieces tensors;
    std::mutex mutex;
    for (const int plan : {0, 1})
      run(plan, options_.steps.value_or(1), [&](const TensorKey &key, Piece piece, const std::byte *bytes) {
        piece.digest = digestOf(bytes, uint64_t(byteSize(piece.dtype)), piece.first, piece.count);
        const std::lock_guard lock(mutex);
        addPiece(piece, tensors[key][size_t(plan)]);
      });
    const Comparison comparison = compare(tensors);
    BisectResult result{comparison.difference.has_value(), textOf(comparison), noteText()};
    if (const auto &difference = comparison.difference) {
      const TensorBytes one = bytesOf(difference->key, difference->one),
                        other = bytesOf(difference->key, difference->other);
      result.text = textOf(*difference, {&plans_[0], &plans_[1]}, paths_, one, other) + result.text;
    }
    return result;
  }

private:
  void run(int plan, uint64_t steps, const PieceSink &sink) const {
    TensorObservers tensors(sink, plan == 0 ? nullptr : &names_);
    TrainingOptions options = options_;
    options.planPath = paths_[size_t(plan)];
    options.ranks = plan::worldSize(plans_[size_t(plan)]);
    options.steps = steps;
    options.onNonFinite = OnNonFinite::Continue; // what differs may be just that
    options.replicaDigestInterval = 0;
    options.observers = &tensors;
    try {
      Training training(options, kernels_);
      StepWatcher watcher(training, tensors);
      watcher.show(0);
      training.run(watcher, stop_);
    } catch (const Error &error) {
      throw Error("plan " + paths_[size_t(plan)] + " could not be run to compare it: " + error.what());
    }
  }

  /// Runs the plan again, up to the step of the tensor, for the bytes of one side of a difference.
  TensorBytes bytesOf(const TensorKey &wanted, const Difference::Side &side) const {
    const uint64_t begin = side.pieces.front().first, size = uint64_t(byteSize(side.pieces.front().dtype)),
                   end = side.pieces.back().first + side.pieces.back().count;
    TensorBytes bytes{side.pieces.front().dtype, begin, std::vector<std::byte>((end - begin) * size)};
    run(side.plan, std::max<uint64_t>(wanted.step, 1),
        [&](const TensorKey &key, const Piece &piece, const std::byte *from) {
          const auto isIt = [&](const Piece &other) {
            return other.writer == piece.writer && other.first == piece.first;
          };
          if (key == wanted && std::ranges::any_of(side.pieces, isIt)) // each has bytes of its own
            std::memcpy(bytes.bytes.data() + (piece.first - begin) * size, from, piece.count * size);
        });
    return bytes;
  }

  std::string noteText() const {
    std::string note = names_.note();
    for (const int plan : {0, 1})
      if (plans_[size_t(plan)].numerics() != "bit-equal")
        note += (note.empty() ? "" : "; ") + paths_[size_t(plan)] + " says that its numerics are " +
                plans_[size_t(plan)].numerics() +
                ", so it may add in another order than one rank would and differ rightly";
    return note;
  }

  const std::array<std::string, 2> paths_;
  const TrainingOptions &options_;
  const kernels::KernelRegistry &kernels_;
  const std::atomic<bool> &stop_;
  const std::array<plan::proto::Plan, 2> plans_;
  const Correspondence names_;
};

} // namespace

BisectResult bisect(const std::string &pathA, const std::string &pathB, const TrainingOptions &options,
                    const kernels::KernelRegistry &kernels, const std::atomic<bool> &stop) {
  return Bisection(pathA, pathB, options, kernels, stop).result();
}

} // namespace ds::runtime
