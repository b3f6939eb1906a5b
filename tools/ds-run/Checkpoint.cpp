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
#include <spawn.h>
#include <string>
#include <sys/wait.h>
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

/// Runs models/NAME.py, which reads files of others by their own libraries, and says what it refuses itself. `words`
/// are its flags and, behind "--", paths. Returns its exit code.
int runScript(const std::string &name, const std::string &reads, std::vector<std::string> words) {
  const std::filesystem::path script =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../share/deepstatic/models" / (name + ".py");
  if (!std::filesystem::exists(script))
    throw Error(script.lexically_normal().string() + " is missing; install DeepStatic as a whole");
  words.insert(words.begin(), {"python3", script.string()});
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  if (const int code = ::posix_spawnp(&child, "python3", nullptr, nullptr, pointers.data(), environ); code != 0)
    throw Error("python3, which reads " + reads + ", cannot be started: " + std::strerror(code) +
                "; activate the Python environment that wrote them");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct PassingFile {
  const std::string path;
  ~PassingFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

/// The values pass through a file beside the result.
int exportOnnx(const runtime::SavedWeights &weights, const ExportArguments &arguments) {
  const PassingFile file{arguments.onnx + ".weights.part"};
  runtime::exportSafetensors(weights, file.path);
  std::vector<std::string> words;
  if (!arguments.weights.empty())
    words.push_back("--weights=" + arguments.weights);
  words.insert(words.end(), {"--", file.path, arguments.like, arguments.onnx});
  return runScript("to_onnx", "ONNX files", words);
}

} // namespace

int checkpoint(const CheckpointArguments &arguments) {
  if (arguments.action == CheckpointArguments::Action::Convert)
    return runScript("from_deepspeed", "DeepSpeed's files", {"--", arguments.source, arguments.folder});
  if (arguments.action == CheckpointArguments::Action::Verify)
    verify(arguments.folder);
  else
    std::fputs(runtime::checkpointTable(arguments.folder).c_str(), stdout);
  return 0;
}

int exportWeights(const ExportArguments &arguments) {
  const std::vector<NamedPath> read = {
      {"what it is made of,", arguments.source}, {"--like", arguments.like}, {"--weights", arguments.weights}};
  refuseOverwriting({"-o", arguments.output}, read);
  refuseOverwriting({"--onnx", arguments.onnx}, read);
  const runtime::SavedWeights weights(arguments.source);
  if (!arguments.onnx.empty())
    return exportOnnx(weights, arguments);
  if (!arguments.output.empty()) {
    const auto write = arguments.adapter ? runtime::exportAdapters : runtime::exportSafetensors;
    write(weights, arguments.output);
  } else {
    const auto write = arguments.adapter ? runtime::writeAdapterFolder : runtime::writeHuggingFaceFolder;
    for (const std::string &note : write(weights, arguments.like, arguments.folder))
      std::fprintf(stderr, "note: %s\n", note.c_str());
  }
  const std::string what = arguments.adapter ? "the adapters" : std::to_string(weights.tensors().size()) + " tensors";
  std::printf("wrote %s: %s of %s\n", (arguments.output.empty() ? arguments.folder : arguments.output).c_str(),
              what.c_str(), weights.path().c_str());
  return 0;
}

} // namespace ds::run
