//===- FlightFile.cpp - the flight record of one rank, as a file ----------===//
#include "runtime/flight/FlightFile.h"

#include "core/Error.h"
#include "runtime/device/CommandRing.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ds::runtime {
namespace {

using Json = nlohmann::json;

constexpr uint64_t maxQueues = 1u << 16;
constexpr size_t columns = 11; // of a command's line

std::string dump(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json peersJson(const std::vector<PeerCount> &peers) {
  Json list = Json::array();
  for (const PeerCount &peer : peers)
    list.push_back({peer.sent, peer.expected, peer.received});
  return list;
}

Json countsJson(const std::vector<EntranceCount> &counts) {
  Json list = Json::array();
  for (const EntranceCount &count : counts)
    list.push_back({count.queue, uint32_t(count.kind), count.index, count.entrances, peersJson(count.peers)});
  return list;
}

Json stagesJson(const std::vector<HostStage> &stages) {
  Json list = Json::array();
  for (const HostStage &stage : stages)
    list.push_back({uint32_t(stage.state), stage.number, stage.sinceMs, stage.work});
  return list;
}

Json stillsJson(const std::vector<Stillness> &stills) {
  Json list = Json::array();
  for (const Stillness &still : stills)
    list.push_back({still.ms, still.untilMs});
  return list;
}

/// A whole number up to `most`; anybody may have written the line.
template <typename Number> Number number(const Json &json, uint64_t most = std::numeric_limits<Number>::max()) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > most)
    throw Error("it is damaged: a number is out of range");
  return Number(json.get<uint64_t>());
}

int64_t time(const Json &json) { return number<int64_t>(json, uint64_t(1) << 42); } // so that it is one in ns, too

EntranceCount countOf(const Json &json) {
  EntranceCount count{.queue = number<uint32_t>(json.at(0)),
                      .kind = number<EntranceCount::Kind>(json.at(1), 2),
                      .index = number<uint32_t>(json.at(2)),
                      .entrances = number<uint64_t>(json.at(3))};
  for (const Json &peer : json.at(4))
    count.peers.push_back({.sent = number<uint64_t>(peer.at(0)),
                           .expected = number<uint64_t>(peer.at(1)),
                           .received = number<uint64_t>(peer.at(2))});
  return count;
}

HostStage stageOf(const Json &json) {
  return {.state = number<HostState>(json.at(0), 2),
          .number = number<uint64_t>(json.at(1)),
          .sinceMs = time(json.at(2)),
          .work = json.at(3).get<std::string>()};
}

CommandEntry entryOf(const Json &json) {
  if (json.size() != columns)
    throw Error("it is damaged: a command has other columns");
  return {.step = number<uint64_t>(json[1]),
          .entrance = number<uint64_t>(json[5]),
          .program = number<uint32_t>(json[2]),
          .call = number<uint32_t>(json[3]),
          .command = number<uint32_t>(json[4]),
          .state = number<CommandState>(json[6], 2),
          .wait = number<uint32_t>(json[7]),
          .waitMs = time(json[8]),
          .beginMs = time(json[9]),
          .endMs = time(json[10])};
}

FlightFile headerOf(const Json &json) {
  if (!json.is_object() || !json.contains("flight_recorder"))
    throw Error("it is no flight record");
  if (json["flight_recorder"] != FlightFile::version)
    throw Error("it is of another version (" + json["flight_recorder"].dump() + "), but this ds-run reads version " +
                std::to_string(FlightFile::version));
  FlightFile file{.rank = number<uint32_t>(json.at("rank")),
                  .ranks = number<uint32_t>(json.at("ranks")),
                  .plan = number<uint32_t>(json.at("plan")),
                  .run = json.at("run").get<std::string>(),
                  .host = json.at("host").get<std::string>(),
                  .process = number<int64_t>(json.at("process"), 1u << 30),
                  .reason = json.at("reason").get<std::string>(),
                  .error = json.at("error").get<std::string>(),
                  .missed = {},
                  .writtenMs = time(json.at("written_ms")),
                  .stages = {},
                  .stills = {},
                  .data = json.at("data").get<std::vector<std::string>>(),
                  .counts = {},
                  .queues = {}};
  for (const Json &stage : json.at("stages"))
    file.stages.push_back(stageOf(stage));
  if (file.stages.empty())
    throw Error("it is damaged: it does not say what the host was about");
  for (const Json &rank : json.at("missed"))
    file.missed.push_back(number<uint32_t>(rank));
  for (const Json &still : json.at("stills"))
    file.stills.push_back({time(still.at(0)), time(still.at(1))});
  for (const Json &count : json.at("entrances"))
    file.counts.push_back(countOf(count));
  file.queues.resize(number<uint32_t>(json.at("queues"), maxQueues));
  return file;
}

FlightFile parseLines(std::string_view text) {
  FlightFile file;
  uint64_t commands = 0;
  for (uint64_t line = 0; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      throw Error("it ends within a line");
    const Json json = Json::parse(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (line == 0) {
      file = headerOf(json);
    } else if (json.is_array()) {
      file.queues.at(number<uint32_t>(json.at(0))).push_back(entryOf(json));
      ++commands;
    } else {
      if (number<uint64_t>(json.at("commands")) != commands || !text.empty())
        throw Error("it does not have as many commands as it says");
      return file;
    }
  }
  throw Error("its end is missing");
}

} // namespace

std::string FlightFile::text() const {
  std::string text = dump({{"flight_recorder", version},
                           {"rank", rank},
                           {"ranks", ranks},
                           {"plan", plan},
                           {"run", run},
                           {"host", host},
                           {"process", process},
                           {"reason", reason},
                           {"error", error},
                           {"missed", missed},
                           {"written_ms", writtenMs},
                           {"stages", stagesJson(stages)},
                           {"stills", stillsJson(stills)},
                           {"data", data},
                           {"entrances", countsJson(counts)},
                           {"queues", queues.size()}});
  uint64_t commands = 0;
  for (size_t queue = 0; queue < queues.size(); ++queue)
    for (const CommandEntry &entry : queues[queue]) {
      text += dump({queue, entry.step, entry.program, entry.call, entry.command, entry.entrance, uint32_t(entry.state),
                    entry.wait, entry.waitMs, entry.beginMs, entry.endMs});
      ++commands;
    }
  return text + dump({{"commands", commands}});
}

FlightFile FlightFile::parse(std::string_view text) {
  try {
    return parseLines(text);
  } catch (const Json::exception &) { // its sentences tell of JSON, which the reader need not know
    throw Error("it is damaged: a line of it is no JSON of the expected form");
  } catch (const std::out_of_range &) {
    throw Error("it is damaged: it names a queue that it does not have");
  }
}

std::string flightFileName(uint32_t rank) { return "flight-" + std::to_string(rank) + ".json"; }

} // namespace ds::runtime
