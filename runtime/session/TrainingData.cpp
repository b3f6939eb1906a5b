//===- TrainingData.cpp - the samples of a run ----------------------------===//
#include "runtime/session/TrainingData.h"

#include "core/DType.h"
#include "core/Error.h"
#include "runtime/data/ArrivingData.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/InputSpec.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/Resuming.h"
#include "runtime/session/TrainingOptions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace ds::runtime {

std::vector<InputSpec> inputSpecs(const plan::proto::Plan &plan) {
  std::vector<InputSpec> specs;
  for (const plan::proto::Input &input : plan.inputs()) {
    InputSpec &spec = specs.emplace_back();
    spec.name = input.name();
    spec.dtype = DType(input.dtype());
    spec.sampleShape.assign(input.shape().begin() + 1, input.shape().end());
    spec.tokens = input.tokens() == "same"   ? InputSpec::Tokens::Same
                  : input.tokens() == "next" ? InputSpec::Tokens::Next
                                             : InputSpec::Tokens::None;
    spec.limit = input.limit();
    if (input.has_ignored())
      spec.ignored = input.ignored();
  }
  // Of a plan for several sizes, those of each size stand one behind the other; what differs between them varies.
  const size_t sizes = size_t(plan.shorter_size()) + 1, inputs = specs.size() / sizes;
  for (size_t i = 0; i < specs.size() && sizes > 1; ++i)
    for (size_t d = 0; d < specs[i].sampleShape.size(); ++d)
      specs[i].varies.push_back(std::ranges::any_of(std::views::iota(size_t(1), sizes), [&](size_t size) {
        return specs[size * inputs + i % inputs].sampleShape[d] != specs[i % inputs].sampleShape[d];
      }));
  return specs;
}

TrainingData::TrainingData(const TrainingOptions &options, const plan::proto::Plan &plan, const Beginning &beginning)
    : options_(options), beginning_(beginning), samplesPerStep_(plan.training().train_batch_size()) {
  const Sizes sizes{.dimension = plan.dimension(), .each = plan::sizesOf(plan)};
  const Dataset::Order order{.shuffle = beginning.manifest.shuffle && !options.evaluateOnly,
                             .seed = beginning.manifest.seed};
  if (dataArrives(options) && beginning.manifest.shuffle)
    throw Error("checkpoint " + beginning.checkpoint +
                " is of a run that shuffles its data, which --data - cannot; name the files after --data");
  if (dataArrives(options))
    arriving_ = std::make_unique<ArrivingData>(inputSpecs(plan), samplesPerStep_, STDIN_FILENO, sizes);
  else if (!options.evaluateOnly)
    data_ = std::make_unique<Dataset>(inputSpecs(plan), options.data, order, sizes);
  if (options.evaluateOnly || !options.evaluationData.empty())
    evaluation_ = std::make_unique<Dataset>(inputSpecs(plan),
                                            options.evaluationData.empty() ? options.data : options.evaluationData,
                                            Dataset::Order{}, sizes);
}

uint64_t TrainingData::steps() const {
  if (arriving_)
    return options_.steps.value_or(untilEnd);
  return data_ ? options_.steps.value_or((data_->samples() + samplesPerStep_ - 1) / samplesPerStep_) : 0;
}

std::string TrainingData::epochs(uint64_t stepsLeft) const {
  const uint64_t samples = data_ ? data_->samples() : 0, taken = stepsLeft * samplesPerStep_;
  if (samples == 0 || !options_.steps || taken <= samples)
    return "";
  return std::to_string(stepsLeft) + (stepsLeft == 1 ? " step takes " : " steps take ") + std::to_string(taken) +
         " samples; the data has " + std::to_string(samples) + (samples == 1 ? " sample" : " samples") +
         ", and is gone through " + std::to_string((taken + samples - 1) / samples) + " times";
}

void TrainingData::check(uint64_t stepsLeft) const {
  if (data_)
    data_->check(beginning_.manifest.samples, stepsLeft * samplesPerStep_, options_.checkData);
  if (evaluation_)
    evaluation_->check(0, evaluation_->samples(), options_.checkData);
}

std::optional<ArrivingData::Samples> TrainingData::samplesOf(uint64_t stepsDone,
                                                             const std::function<bool()> &ended) const {
  if (arriving_)
    return arriving_->next(ended);
  return ArrivingData::Samples{.data = data_.get(),
                               .first = beginning_.manifest.samples +
                                        (stepsDone - beginning_.manifest.step) * samplesPerStep_};
}

std::string TrainingData::noteOfUnread() {
  std::set<std::string> names;
  for (const Dataset *data : {data_.get(), evaluation_.get()})
    if (data)
      names.merge(data->unread());
  return unread_.note(names);
}

} // namespace ds::runtime
