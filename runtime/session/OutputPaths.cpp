//===- OutputPaths.cpp - results never overwrite what a run reads ---------===//
#include "runtime/session/OutputPaths.h"

#include "core/Error.h"
#include "core/Files.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/Training.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;

/// A pipe or a terminal, which has no content to lose; behind /dev/stdout it has no path either.
bool isStream(const fs::path &path) { return isThere(path) && !fs::is_regular_file(path) && !fs::is_directory(path); }

/// One file by two names counts, whether it exists already or not.
bool sameFile(const fs::path &a, const fs::path &b) {
  if (isStream(a) || isStream(b))
    return false;
  if (isThere(a) && isThere(b))
    return fs::is_regular_file(a) && fs::equivalent(a, b);
  return fs::weakly_canonical(fs::absolute(a)) == fs::weakly_canonical(fs::absolute(b));
}

using Named = std::pair<std::string, std::string>; // what it is, path

void refuse(const Named &output, const Named &other) {
  if (!output.second.empty() && !other.second.empty() && sameFile(output.second, other.second))
    throw Error(output.first + " " + output.second + " would overwrite " + other.first + " " + other.second +
                "; give it another name");
}

} // namespace

void refuseOverwriting(const TrainingOptions &options, const plan::proto::Plan &plan) {
  std::vector<Named> inputs = {{"the plan", options.planPath}};
  for (const plan::proto::WeightFile &file : plan.weight_files())
    inputs.emplace_back("the plan's weight file", fs::path(options.planPath).parent_path() / file.path());
  for (const std::string &path : options.data)
    inputs.emplace_back("the data file", path);
  for (const std::string &path : options.evaluationData)
    inputs.emplace_back("the evaluation data", path);
  const std::vector<Named> outputs = {
      {"--export", options.exportPath}, {"--metrics", options.metrics}, {"--trace", options.trace}};
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const Named &input : inputs)
      refuse(outputs[i], input);
    for (size_t other = 0; other < i; ++other)
      refuse(outputs[i], outputs[other]);
    if (i > 0)
      refuse(outputs[i], {"the weights", options.weights});
  }
}

} // namespace ds::runtime
