//===- Records.cpp - the flight records of a run --------------------------===//
#include "runtime/postmortem/Records.h"

#include "core/Crc32c.h"
#include "core/Error.h"
#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t maxFileBytes = uint64_t(256) << 20;

std::string readText(const fs::path &path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown))
    throw Error("it is no regular file");
  if (fs::file_size(path, unknown) > maxFileBytes)
    throw Error("it is larger than any flight record");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw Error("it cannot be read, or is empty");
  return text.str();
}

uint64_t commandsOf(const plan::proto::Role &role) {
  uint64_t commands = 0;
  for (const plan::proto::Routine &routine : role.routines())
    commands += uint64_t(routine.commands_size());
  return commands;
}

/// Whoever reads the record uses its numbers as indices into the plan.
void requireFits(const FlightFile &file, const plan::proto::Plan &plan) {
  const Error misfit("it names what the plan does not have");
  if (file.ranks != plan::worldSize(plan) || file.rank >= file.ranks)
    throw misfit;
  const plan::proto::Role &role = plan::roleOfRank(plan, file.rank);
  if (file.queues.size() != size_t(role.queues_size()))
    throw misfit;
  if (std::ranges::any_of(file.missed, [&](uint32_t rank) { return rank >= file.ranks; }))
    throw misfit;
  const uint64_t commands = commandsOf(role);
  for (const std::vector<CommandEntry> &queue : file.queues)
    for (const CommandEntry &entry : queue)
      if (entry.command >= commands || entry.program >= uint32_t(role.programs_size()) ||
          entry.call >= uint32_t(role.programs(int(entry.program)).calls_size()))
        throw misfit;
  for (const EntranceCount &count : file.counts) {
    const bool collective = count.kind == EntranceCount::Kind::Collective;
    if (count.queue >= file.queues.size() ||
        count.index >= uint32_t(collective ? plan.communicators_size() : plan.channels_size()) ||
        (!count.peers.empty() && (!collective || count.peers.size() != plan::Group(plan, count.index).size())))
      throw misfit;
  }
}

/// The files of a folder that can be used, by rank, whatever run they are of.
class Reader {
public:
  Reader(const std::string &folder, const plan::proto::Plan &plan) : folder_(folder), plan_(plan) {
    const std::string bytes = plan::framePlan(plan);
    digest_ = crc32c(std::as_bytes(std::span(bytes)));
    records_.ranks.resize(plan::worldSize(plan));
  }

  Records read() {
    std::error_code error;
    std::vector<fs::path> paths;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error))
      if (const std::string name = entry->path().filename(); name.starts_with("flight-") && name.ends_with(".json"))
        paths.push_back(entry->path());
    if (error)
      throw Error(folder_ + " cannot be read: " + error.message());
    std::ranges::sort(paths);
    for (const fs::path &path : paths)
      add(path);
    if (files_.empty())
      throw Error(folder_ + " has no flight record of this plan" +
                  (records_.notes.empty()
                       ? ": no file is called flight-RANK.json; a run writes them beside its plan, into PLAN.flight"
                       : " that can be used; " + records_.notes[0]));
    keepLastRun();
    return std::move(records_);
  }

private:
  void add(const fs::path &path) {
    try {
      FlightFile file = FlightFile::parse(readText(path));
      if (file.plan != digest_)
        throw Error("it is of a run of another plan");
      requireFits(file, plan_);
      if (path.filename() != flightFileName(file.rank))
        throw Error("it is of rank " + std::to_string(file.rank) + ", so it is under a wrong name");
      files_[file.rank] = std::move(file);
    } catch (const Error &error) {
      note(path.filename(), error.what());
    }
  }

  void note(const std::string &name, const std::string &why) {
    records_.notes.push_back(name + " is not used: " + why);
    for (uint32_t rank = 0; rank < records_.ranks.size(); ++rank)
      if (name == flightFileName(rank))
        records_.ranks[rank].trouble = why;
  }

  /// An earlier run may have had other ranks that hung. What somebody asked for before the failure says nothing of it.
  void keepLastRun() {
    const auto last = std::ranges::max_element(files_, {}, [](const auto &file) { return file.second.writtenMs; });
    const std::string run = last->second.run;
    const bool failed = std::ranges::any_of(
        files_, [&](const auto &file) { return file.second.run == run && file.second.reason == "failure"; });
    for (auto &[rank, file] : files_)
      if (file.run != run)
        note(flightFileName(rank), "it is of an earlier run");
      else if (failed && file.reason != "failure")
        note(flightFileName(rank), "it was written on a signal, before the run failed");
      else
        records_.ranks[rank].file = std::move(file);
  }

  const std::string &folder_;
  const plan::proto::Plan &plan_;
  uint32_t digest_ = 0;
  Records records_;
  std::map<uint32_t, FlightFile> files_; // by rank
};

} // namespace

std::string Records::error() const {
  const FlightFile *first = nullptr;
  for (const RankRecord &rank : ranks)
    if (rank.file && !rank.file->error.empty() && (first == nullptr || rank.file->writtenMs < first->writtenMs))
      first = &*rank.file;
  return first != nullptr ? first->error : "";
}

Records readRecords(const std::string &folder, const plan::proto::Plan &plan) { return Reader(folder, plan).read(); }

} // namespace ds::runtime
