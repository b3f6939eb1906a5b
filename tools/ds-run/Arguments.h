//===- Arguments.h - ds-run's command line --------------------------------===//
#pragma once

#include "runtime/session/Training.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace ds::run {

/// Wrong usage: exit code 2.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// ds-run postmortem DIR PLAN [--trace FILE]
struct PostmortemArguments {
  std::string folder, planPath, trace;
};

/// ds-run checkpoint ls|verify DIR, ds-run checkpoint convert DIR --from-deepspeed SOURCE
struct CheckpointArguments {
  enum class Action { List, Verify, Convert };
  Action action = Action::List;
  std::string folder, source;
};

/// ds-run export SOURCE -o FILE | --hf FOLDER --like FOLDER [--adapter]
struct ExportArguments {
  std::string source, output, folder, onnx, like, weights;
  bool adapter = false;
};

struct Arguments {
  enum class Command { Train, Bisect, Tune, Postmortem, Checkpoint, Export, Info, Help };

  Command command = Command::Train;
  runtime::TrainingOptions training;
  PostmortemArguments postmortem;
  CheckpointArguments checkpoint;
  ExportArguments exporting;
  std::string certificate;         ///< --certify
  std::vector<std::string> bisect; ///< two plans
  bool quiet = false, verbose = false;
  std::string text; ///< of Help
};

/// Throws UsageError.
Arguments parseArguments(int argc, char **argv);

} // namespace ds::run
