//===- TrainingOptions.h - what a user asks of a run ----------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/session/DeviceChoice.h"
#include "runtime/session/LocalRanks.h"
#include "runtime/session/NonFinite.h"
#include "runtime/session/Saving.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

class FlightRecorder;
class Profile;
class WriteObservers;

/// What a launcher says about the processes that it has started, each of which is one rank.
struct Launch {
  std::string launcher;              ///< "mpirun", "srun", "torchrun"
  std::optional<uint64_t> processes; ///< where the environment tells
  bool byTcp = false;                ///< they find each other by torchrun's variables; else by MPI
  std::string arguments = {};        ///< this tool's own, for a line to try
};

/// What a user asks of a run; ds-run's flags.
struct TrainingOptions {
  std::string planPath;
  std::optional<uint64_t> ranks; ///< -n: so many, all in this process; must be the plan's
  std::optional<Launch> launch;  ///< read where `ranks` is not given; neither: all of the plan's in this process
  std::chrono::milliseconds collectiveTimeout = std::chrono::minutes(10);
  std::string device;                            ///< "cpu" | "cuda" | "null"; empty: the plan's
  NvmeWish nvme;                                 ///< of what the plan keeps on NVMe
  std::vector<std::string> data, evaluationData; ///< data: or "-" alone, cf. ArrivingData, whose lines are stdin's
  uint64_t checkData = 0;                        ///< bytes of each that are looked at before the first step
  std::optional<uint64_t> steps;                 ///< none: one epoch, or what arrives
  uint64_t evaluationInterval = 0;               ///< in steps; 0: once, at the end
  bool evaluateOnly = false;
  std::optional<uint64_t> seed; ///< none: the checkpoint's, or 0
  int threads = 0;              ///< 0: as many as the plan was compiled for
  bool shuffle = false;
  bool checkMemory = false, checkNumerics = false;
  OnNonFinite onNonFinite = OnNonFinite::Stop;
  /// Steps between comparisons of what is replicated; 0: none. Not given: 100, and 1000 where memory is not the host's,
  /// as it is read through the host.
  std::optional<uint64_t> replicaDigestInterval = std::nullopt;
  double peakTflops = 0; ///< of a rank, for the model FLOPs utilization; 0: unknown
  std::string weights, metrics, trace, exportPath;
  SavingOptions saving = {};
  std::string resume = {}, resumeTag = {}; ///< a folder of checkpoints, and the name of one; empty: none, the newest
  bool resumeIfPresent = false;            ///< a folder without checkpoints is no error
  std::vector<std::string> set = {};       ///< "optimizer.params.lr=0.001": values of the plan to change
  std::optional<std::chrono::duration<double>> maxTime = std::nullopt; ///< since the Training was made
  WriteObservers *observers = nullptr; ///< of what commands write, outlives the run; nullptr: none
  FlightRecorder *flight = nullptr;    ///< outlives the run; nullptr: none
  /// Asked for a plan, where this process has rank 0: times of commands, of the first rank of each role
  /// that runs here; outlive the run; nullptr: none.
  std::function<Profile *(const plan::proto::Plan &)> profile = {};
  std::string flightFolder = {}; ///< where it writes; empty: beside the plan
  /// What else must be the same in every process: what it is called, and its digest.
  std::vector<std::pair<std::string, uint64_t>> software = {};
  std::function<void(const std::string &error)> onFailure; ///< told once, as soon as some rank fails; from any thread
  LocalRanks::MakeDevice makeDevice; ///< instead of `device`: one for each rank; for tests that disturb it
};

/// Whether --data is "-": names of files that arrive on stdin.
inline bool dataArrives(const TrainingOptions &options) { return options.data == std::vector<std::string>{"-"}; }

} // namespace ds::runtime
