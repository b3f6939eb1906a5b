//===- Postmortem.cpp - ds-run postmortem ---------------------------------===//
#include "runtime/postmortem/Postmortem.h"

#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"
#include "runtime/postmortem/Standing.h"
#include "runtime/postmortem/WaitGraph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

constexpr size_t mostNamed = 3; // culprits, and kinds of waits, in the paragraph

/// What to look at.
std::string advice(const Culprit &culprit) {
  const std::string ranks = ranksText(culprit.ranks);
  switch (culprit.blame) {
  case Blame::NoRecord:
    return "look at the process of " + ranks +
           " first: whether it is there, and if it is in state T (stopped) or D (waits for a disk), and what its host "
           "says (dmesg)";
  case Blame::Still:
    return "find out who stopped " + ranks +
           " (a debugger, a scheduler that suspends jobs, kill -STOP), or its host (a " +
           "virtual machine that was moved, memory that was swapped out)";
  case Blame::Files:
    return "look at the disk or mount that holds the file: whether ls and dd on that host read it, and how fast";
  case Blame::Works:
    return "look at the host of " + ranks +
           ": whether something else uses its cores or memory, and if the op is simply that slow, raise "
           "--collective-timeout";
  case Blame::Lost:
    return "look at the network between these ranks' hosts; the ops themselves agree";
  case Blame::Stands:
    return "nothing outside of " + ranks +
           " explains it; keep the records and the plan, for this may be a bug of the plan";
  case Blame::Circle:
    return "ranks must enter the same collectives in the same order; run ds-opt verify on the plan";
  }
  return "";
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = char(text[0] - 'a' + 'A');
  return text;
}

/// "Ranks 0 and 2 wait for rank 3 in all_gather ..., for 3.0 s." Ranks that wait for the same count as one.
std::string waiters(const WaitGraph &graph) {
  struct Group {
    std::string what;
    std::vector<uint32_t> behind, ranks;
    double seconds = 0;
  };
  std::vector<Group> groups;
  for (uint32_t rank = 0; rank < graph.ranks().size(); ++rank)
    for (const RemoteWait &wait : graph.ranks()[rank].waits) {
      if (wait.behind.empty())
        continue;
      const auto same = std::ranges::find_if(
          groups, [&](const Group &group) { return group.what == wait.what && group.behind == wait.behind; });
      Group &group = same != groups.end() ? *same : groups.emplace_back(Group{wait.what, wait.behind, {}});
      group.ranks.push_back(rank);
      group.seconds = std::max(group.seconds, wait.seconds);
    }
  std::string text;
  for (size_t i = 0; i < groups.size() && i < mostNamed; ++i)
    text += " " + capital(ranksText(groups[i].ranks)) + (groups[i].ranks.size() == 1 ? " waits" : " wait") + " for " +
            ranksText(groups[i].behind) + " " + groups[i].what + ", for " + secondsText(groups[i].seconds) + ".";
  if (groups.size() > mostNamed)
    text += " " + std::to_string(groups.size() - mostNamed) + " more waits are in the table.";
  return text;
}

std::string paragraph(const WaitGraph &graph) {
  const std::vector<Culprit> culprits = graph.culprits();
  if (culprits.empty())
    return "No rank waits for another: when this was written, the run went on, or every rank had ended its part.";
  std::string text;
  for (size_t i = 0; i < culprits.size() && i < mostNamed; ++i)
    text += (i > 0 ? " " : "") + capital(culprits[i].sentence) + ".";
  if (culprits.size() > mostNamed)
    text += " So it is with " + std::to_string(culprits.size() - mostNamed) + " more ranks.";
  return text + waiters(graph) + " To go on: " + advice(culprits[0]) + ".";
}

/// A line for each queue that has something left, or for what the host is about.
std::string table(const WaitGraph &graph) {
  const Records &records = graph.records();
  using Row = std::vector<std::string>;
  std::vector<Row> rows{{"rank", "host", "queue", "step", "where it stands"}};
  for (uint32_t rank = 0; rank < records.ranks.size(); ++rank) {
    const RankRecord &record = records.ranks[rank];
    const std::string name = std::to_string(rank);
    if (!record.file) {
      rows.push_back({name, "?", "", "", record.trouble.empty() ? "no record" : "no record: " + record.trouble});
      continue;
    }
    const std::vector<Standing> &standings = graph.ranks()[rank].standings;
    for (const Standing &standing : standings)
      rows.push_back({name, record.file->host, standing.queue().name(), standing.when(), standing.sentence()});
    if (standings.empty())
      rows.push_back({name, record.file->host, "", "", record.file->stage().work});
  }
  std::string text;
  for (const Row &row : rows) {
    for (size_t column = 0; column + 1 < row.size(); ++column) {
      size_t width = 0;
      for (const Row &other : rows)
        width = std::max(width, other[column].size());
      text += row[column] + std::string(width - row[column].size() + 2, ' ');
    }
    text += row.back() + "\n";
  }
  return text;
}

} // namespace

std::string postmortemText(const plan::proto::Plan &plan, const Records &records) {
  const WaitGraph graph(plan, records);
  std::string text = paragraph(graph) + "\n";
  if (const std::string error = records.error(); !error.empty())
    text += "\nThe run ended with: " + error + "\n";
  text += "\n" + table(graph);
  for (const std::string &note : records.notes)
    text += "note: " + note + "\n";
  return text;
}

} // namespace ds::runtime
