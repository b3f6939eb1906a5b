//===- ExportVariables.cpp - --export -------------------------------------===//
#include "runtime/session/ExportVariables.h"

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "core/Status.h"
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "runtime/comm/Transport.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/data/Widening.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/plan/world/Placement.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/NonFinite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace ds::runtime {
namespace {

bool isExported(const plan::proto::Variable &variable) {
  return variable.kind() == plan::proto::Variable::PARAMETER ||
         (variable.kind() == plan::proto::Variable::BUFFER && variable.persistent());
}

std::vector<uint32_t> allRanks(const plan::proto::Plan &plan) {
  std::vector<uint32_t> ranks(plan::worldSize(plan));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string exportedTypeOf(const plan::proto::Variable &variable) {
  return exportedType(safetensorsName(DType(variable.dtype())));
}

/// What the file will need, a little more than less.
uint64_t exportBytes(const plan::proto::Plan &plan) {
  uint64_t bytes = 4096;
  for (const plan::proto::Variable &variable : plan.variables()) {
    if (!isExported(variable))
      continue;
    bytes +=
        plan::elementsOf(variable) * safetensorsElementBytes(exportedTypeOf(variable)) + variable.name().size() + 192;
    for (const std::string &alias : variable.aliases())
      bytes += alias.size() + variable.name().size() + 16;
  }
  return bytes;
}

/// Of the file system and of this process's limit on files (ulimit -f).
void requireSpace(const plan::proto::Plan &plan, const std::string &path) {
  const uint64_t needed = exportBytes(plan);
  const std::string folder = std::filesystem::absolute(path).parent_path();
  struct statvfs system;
  if (::statvfs(folder.c_str(), &system) == 0 && system.f_blocks > 0)
    if (const uint64_t available = uint64_t(system.f_bavail) * system.f_frsize; available < needed)
      throw Error("--export " + path + " needs " + std::to_string(needed) + " bytes, but " + folder + " has " +
                  std::to_string(available) + " available; make room or export elsewhere");
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < needed)
    throw Error("--export " + path + " needs " + std::to_string(needed) + " bytes, but files may have only " +
                std::to_string(limit.rlim_cur) + " here; raise the limit (ulimit -f)");
}

/// The first element of what a rank should not export, or nothing.
std::optional<uint64_t> firstBad(const plan::proto::Variable &variable, std::span<const std::byte> bytes) {
  const bool isBuffer = variable.kind() == plan::proto::Variable::BUFFER;
  if (!isBuffer && !variable.trainable())
    return std::nullopt; // as it was given; masks have infinities
  const auto find = [&]<typename T>(T element, auto &&toDouble) -> std::optional<uint64_t> {
    for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      std::memcpy(&element, &bytes[i * sizeof(T)], sizeof(T));
      if (const double value = toDouble(element); std::isnan(value) || (!isBuffer && std::isinf(value)))
        return i;
    }
    return std::nullopt;
  };
  const auto same = [](auto value) { return double(value); };
  switch (DType(variable.dtype())) {
  case DType::F32:
    return find(float(), same);
  case DType::F64:
    return find(double(), same);
  case DType::BF16:
    return find(BFloat16(), same);
  case DType::F16:
    return find(Float16(), same);
  default:
    return std::nullopt;
  }
}

/// One export by all processes. Whatever fails on rank 0 is kept while every rank's bytes are still fetched, so that no
/// process waits for another.
class Exporter {
public:
  /// All of it outlives the exporter.
  Exporter(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport, const ExportOptions &options,
           const std::atomic<bool> &stop)
      : plan_(plan), ranks_(ranks), transport_(transport), options_(options), stop_(stop),
        coverings_(plan, allRanks(plan)) {}

  enum class End : uint8_t { Written, NotFinite, NotWritten };
  struct Outcome {
    End end = End::Written;
    Status text; ///< why not, or rank 0's path
  };

  /// The same on every process.
  Outcome write(const std::string &path) {
    outcome_ = {};
    fetched_ = 0;
    const std::vector<TensorToWrite> all = tensors();
    if (ranks_.hasRankZero())
      tryWrite(path, all);
    for (size_t i = fetched_; i < all.size(); ++i)
      all[i].produce([](std::span<const std::byte>) {});
    share(outcome_);
    return outcome_;
  }

  /// Makes it that of rank 0 on every process.
  template <typename T> void share(T &value) {
    for (uint32_t rank = 1; rank < transport_.ranks(); ++rank)
      transport_.copy(0, rank, std::as_writable_bytes(std::span(&value, 1)));
  }

private:
  void tryWrite(const std::string &path, const std::vector<TensorToWrite> &all) {
    lost_ = false;
    try {
      writeSafetensors(path, all, metadata());
      outcome_.text = Status::failure("%s", path.c_str());
    } catch (const Error &error) {
      if (lost_)
        throw;
      if (outcome_.end == End::Written)
        outcome_ = {End::NotWritten, Status::failure("%s", error.what())};
    }
  }

  std::map<std::string, std::string> metadata() const {
    std::map<std::string, std::string> metadata = {{"format", "pt"}}; // transformers refuses files without it
    for (const plan::proto::Variable &variable : plan_.variables())
      for (const std::string &alias : variable.aliases())
        if (isExported(variable))
          metadata[alias] = variable.name();
    return metadata;
  }

  /// In the order in which the file takes them, so that every process sends in it.
  std::vector<TensorToWrite> tensors() {
    std::vector<TensorToWrite> tensors;
    for (int i = 0; i < plan_.variables_size(); ++i) {
      const plan::proto::Variable &variable = plan_.variables(i);
      if (isExported(variable))
        tensors.push_back({variable.name(), exportedTypeOf(variable),
                           Shape(variable.shape().begin(), variable.shape().end()),
                           [this, i](const auto &sink) { produce(i, sink); }});
    }
    std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
    return tensors;
  }

  void produce(int index, const std::function<void(std::span<const std::byte>)> &sink) {
    ++fetched_;
    const plan::proto::Variable &variable = plan_.variables(index);
    const auto elementBytes = uint64_t(byteSize(DType(variable.dtype())));
    uint64_t element = 0;
    std::vector<std::byte> wide;
    std::optional<Error> problem;
    const auto read = [&](const RankPart &part, uint64_t first, std::span<std::byte> bytes) {
      fetch(part, first, bytes);
    };
    readCovering(coverings_.of(uint32_t(index)), elementBytes, read, [&](std::span<const std::byte> bytes) {
      if (!problem)
        try {
          checkFinite(variable, element, bytes);
          sink(asExported(safetensorsName(DType(variable.dtype())), bytes, wide));
        } catch (const Error &error) {
          problem = error;
        }
      element += bytes.size() / elementBytes;
    });
    if (problem)
      throw Error(*problem); // into writeSafetensors
  }

  void fetch(const RankPart &part, uint64_t first, std::span<std::byte> bytes) {
    try {
      if (stop_)
        throw Error("stopped by a signal during the export; " + options_.path + " was not written");
      if (const Executor *executor = ranks_.find(part.rank)) {
        executor->read(part.part, first, bytes);
        if (const Status failure = executor->device().failure(); !failure.ok()) // what was read may be no weight
          throw Error(failure.message());
      }
      transport_.copy(part.rank, 0, bytes);
    } catch (const Error &) {
      lost_ = true; // a rank, and with it the whole run
      throw;
    }
  }

  void checkFinite(const plan::proto::Variable &variable, uint64_t first, std::span<const std::byte> bytes) {
    if (options_.allowNonFinite || !ranks_.hasRankZero() || outcome_.end != End::Written)
      return;
    const std::optional<uint64_t> at = firstBad(variable, bytes);
    if (!at)
      return;
    outcome_ = {End::NotFinite,
                Status::failure("element %llu of %s is NaN or infinite after the last step, so nothing was exported; "
                                "--on-nonfinite continue exports it all the same",
                                static_cast<unsigned long long>(first + *at), variable.name().c_str())};
    throw Error(outcome_.text.message());
  }

  const plan::proto::Plan &plan_;
  const LocalRanks &ranks_;
  Transport &transport_;
  const ExportOptions &options_;
  const std::atomic<bool> &stop_;
  const Coverings coverings_;
  Outcome outcome_;
  size_t fetched_ = 0; // tensors that were, or are being, brought to rank 0
  bool lost_ = false;
};

} // namespace

std::vector<std::string> exportsElsewhere(const std::string &path, const std::string &planPath) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const std::string name = "rescued-" + std::to_string(::getpid()) + "-" + fs::path(path).filename().string();
  std::vector<std::string> paths;
  for (const fs::path &folder :
       {fs::current_path(unknown), fs::absolute(planPath, unknown).parent_path(), fs::temp_directory_path(unknown)})
    if (!folder.empty() && !fs::equivalent(folder, fs::absolute(path, unknown).parent_path(), unknown))
      paths.push_back(folder / name);
  return paths;
}

void checkExport(const plan::proto::Plan &plan, const LocalRanks &ranks, const std::string &path) {
  if (ranks.hasRankZero()) {
    requireWritableFolder(path);
    requireSpace(plan, path);
  }
  if (!ranks.first().device().executes())
    throw Error("--export needs a device that computes; the null device has no weights");
  const Coverings coverings(plan, allRanks(plan));
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (!isExported(variable))
      continue;
    if (const uint64_t covered = coveredElements(coverings.of(uint32_t(i))); covered < plan::elementsOf(variable))
      throw Error("variable " + variable.name() + " cannot be exported: no buffer of the plan holds " +
                  (covered == 0 ? "it" : "all of it"));
  }
}

void exportVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport,
                     const ExportOptions &options, const std::atomic<bool> &stop) {
  Exporter exporter(plan, ranks, transport, options, stop);
  const auto write = [&exporter](const std::string &path) {
    const Exporter::Outcome outcome = exporter.write(path);
    if (outcome.end == Exporter::End::NotFinite)
      throw NonFiniteError(outcome.text.message());
    return outcome;
  };
  const Exporter::Outcome first = write(options.path);
  if (first.end == Exporter::End::Written)
    return;
  uint64_t places = options.elsewhere.size();
  exporter.share(places);
  for (uint64_t i = 0; i < places; ++i) {
    const Exporter::Outcome again = write(i < options.elsewhere.size() ? options.elsewhere[i] : "");
    if (again.end == Exporter::End::Written)
      throw Error(std::string(first.text.message()) + "; the weights are in " + again.text.message() + " instead");
  }
  throw Error(first.text.message());
}

} // namespace ds::runtime
