//===- Checkpoint.cpp - ds-run checkpoint and ds-run export ---------------===//
#include "tools/ds-run/Checkpoint.h"

#include "core/Error.h"
#include "core/Overwriting.h"
#include "runtime/checkpoint/CheckpointReport.h"
#include "runtime/checkpoint/HuggingFaceFolder.h"
#include "runtime/checkpoint/SavedWeights.h"
#include "tools/ds-run/Arguments.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

namespace ds::run {
namespace {

void verify(const std::string &folder) {
  const runtime::Verification verification = runtime::verifyCheckpoints(folder);
  std::fputs(verification.text.c_str(), stdout);
  if (verification.damages.empty())
    return;
  const size_t others = verification.damages.size() - 1;
  throw Error(verification.damages[0] +
              (others > 0 ? "; and " + std::to_string(others) + " more files are damaged" : "") +
              "; copy it from where it is whole, or use another checkpoint");
}

[[noreturn]] void convert(const CheckpointArguments &arguments) {
  const std::filesystem::path script =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../share/deepstatic/models/from_deepspeed.py";
  if (!std::filesystem::exists(script))
    throw Error(script.lexically_normal().string() + ", which reads DeepSpeed's files, is missing; install DeepStatic "
                                                     "as a whole");
  ::execlp("python3", "python3", script.c_str(), "--", arguments.source.c_str(), arguments.folder.c_str(), nullptr);
  throw Error(std::string("python3, which reads DeepSpeed's files, cannot be started: ") + std::strerror(errno) +
              "; activate the Python environment that wrote them");
}

} // namespace

void checkpoint(const CheckpointArguments &arguments) {
  if (arguments.action == CheckpointArguments::Action::Convert)
    convert(arguments);
  if (arguments.action == CheckpointArguments::Action::Verify)
    verify(arguments.folder);
  else
    std::fputs(runtime::checkpointTable(arguments.folder).c_str(), stdout);
}

void exportWeights(const ExportArguments &arguments) {
  refuseOverwriting({"-o", arguments.output}, std::vector<NamedPath>{{"what it is made of,", arguments.source}});
  const runtime::SavedWeights weights(arguments.source);
  if (!arguments.output.empty()) {
    runtime::exportSafetensors(weights, arguments.output);
  } else {
    const auto write = arguments.adapter ? runtime::writeAdapterFolder : runtime::writeHuggingFaceFolder;
    for (const std::string &note : write(weights, arguments.like, arguments.folder))
      std::fprintf(stderr, "note: %s\n", note.c_str());
  }
  const std::string what = arguments.adapter ? "the adapters" : std::to_string(weights.tensors().size()) + " tensors";
  std::printf("wrote %s: %s of %s\n", (arguments.output.empty() ? arguments.folder : arguments.output).c_str(),
              what.c_str(), weights.path().c_str());
}

} // namespace ds::run
