//===- Arguments.h - ds-run's command line --------------------------------===//
#pragma once

#include "runtime/session/Training.h"
#include "tools/command-line/CommandLine.h"

#include <string>

namespace ds::run {

using tool::UsageError;

struct Arguments {
  enum class Command { Train, Info, Help };

  Command command = Command::Train;
  runtime::TrainingOptions training;
  bool quiet = false, verbose = false;
  std::string text; ///< of Help
};

/// Throws UsageError.
Arguments parseArguments(int argc, char **argv);

} // namespace ds::run
