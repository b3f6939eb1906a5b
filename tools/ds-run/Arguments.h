//===- Arguments.h - ds-run's command line --------------------------------===//
#pragma once

#include "runtime/session/Training.h"

#include <stdexcept>
#include <string>

namespace ds::run {

/// Wrong usage: exit code 2.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

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
