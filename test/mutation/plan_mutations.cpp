//===- plan_mutations.cpp - breaks plans and counts who notices ------------===//
//
// plan_mutations PLAN... --data DATA [--mutants N] [--kinds A,B] [--seed S] [--keep FOLDER] [--verbose]: plants defects
// in the plans, one a copy, and judges each copy. Prints a table; exits with 1 if a defect was missed, if one that is
// always harmful was accepted, or if a kind found no place in any plan. docs/mutations.md.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/mutation/Judge.h"
#include "test/mutation/Kinds.h"
#include "test/mutation/Places.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

using namespace ds;
using namespace ds::mutation;

namespace {

struct Arguments {
  std::vector<std::string> plans, kinds;
  std::string data, folder;
  int mutants = 100, runs = 5;
  uint64_t seed = 1;
  bool list = false, verbose = false;
};

struct Subject {
  std::string name;
  plan::proto::Plan plan;
  Judge judge;
};

struct Count {
  Kind kind;
  std::array<int, 5> outcomes{}; ///< by Outcome
  int placed = 0;                ///< refusals that name where the defect lies
  int planted() const {
    int sum = 0;
    for (int one : outcomes)
      sum += one;
    return sum;
  }
  int refused() const { return outcomes[0] + outcomes[1] + outcomes[2]; }
};

class Campaign {
public:
  Campaign(const Arguments &arguments, std::vector<Subject> subjects)
      : arguments_(arguments), subjects_(std::move(subjects)) {
    for (const Kind &kind : allKinds())
      if (arguments.kinds.empty() || std::ranges::count(arguments.kinds, kind.name) > 0)
        counts_.push_back({kind});
  }

  /// Every kind in every plan in turn, until there are enough mutants that differ or no new ones are found.
  bool run() {
    int done = 0;
    for (uint64_t round = 0; done < arguments_.mutants && round < 40 * subjects_.size(); ++round)
      for (size_t k = 0; k < counts_.size() && done < arguments_.mutants; ++k)
        done += plant(counts_[k], subjects_[(round + k) % subjects_.size()], round);
    print();
    return failures_ == 0;
  }

private:
  bool plant(Count &count, Subject &subject, uint64_t round) {
    Random random(arguments_.seed * 1000003 + round);
    plan::proto::Plan broken = subject.plan;
    const std::string what = count.kind.plant(broken, random);
    if (what.empty() || !seen_.insert(subject.name + broken.SerializeAsString()).second)
      return false;
    if (!arguments_.folder.empty())
      plan::writePlanFile(arguments_.folder + "/" + count.kind.name + "-" + std::to_string(count.planted()) + ".dsplan",
                          broken);
    const Judgement judgement = subject.judge.judge(broken);
    ++count.outcomes[size_t(judgement.outcome)];
    const bool wrong = judgement.outcome == Outcome::Missed ||
                       (judgement.outcome == Outcome::Equal && count.kind.alwaysHarmful) ||
                       (judgement.outcome != Outcome::Equal && judgement.sentence.empty());
    failures_ += wrong;
    const bool isRefused = judgement.outcome != Outcome::Equal && judgement.outcome != Outcome::Missed;
    const bool isPlaced = isRefused && Places(subject.plan, broken).areNamedIn(judgement.sentence);
    count.placed += isPlaced;
    if (wrong || arguments_.verbose)
      std::fprintf(stderr, "%s%s in %s: %s: %s%s: %s\n", wrong ? "WRONG " : "", count.kind.name, subject.name.c_str(),
                   what.c_str(), outcomeName(judgement.outcome), isRefused && !isPlaced ? " elsewhere" : "",
                   judgement.sentence.c_str());
    return true;
  }

  static const char *outcomeName(Outcome outcome) {
    constexpr const char *names[] = {"refused by the reader", "refused by the checker", "refused at load", "accepted",
                                     "missed"};
    return names[size_t(outcome)];
  }

  void print() {
    std::array<int, 5> sum{};
    int placed = 0;
    std::printf("| kind | always harmful | planted | refused by the reader | by the checker | at load | accepted, bits "
                "equal | missed | place named |\n|---|---|---|---|---|---|---|---|---|\n");
    for (const Count &count : counts_) {
      std::printf("| %s | %s | %d |", count.kind.name, count.kind.alwaysHarmful ? "yes" : "", count.planted());
      for (size_t i = 0; i < sum.size(); ++i) {
        std::printf(" %d |", count.outcomes[i]);
        sum[i] += count.outcomes[i];
      }
      placed += count.placed;
      std::printf(" %d |\n", count.placed);
      if (count.planted() == 0 && arguments_.mutants >= int(counts_.size())) {
        std::fprintf(stderr, "WRONG %s found no place in any plan\n", count.kind.name);
        ++failures_;
      }
    }
    std::printf("| all %zu | | %d | %d | %d | %d | %d | %d | %d |\n", counts_.size(),
                sum[0] + sum[1] + sum[2] + sum[3] + sum[4], sum[0], sum[1], sum[2], sum[3], sum[4], placed);
  }

  const Arguments &arguments_;
  std::vector<Subject> subjects_;
  std::vector<Count> counts_;
  std::set<std::string> seen_;
  int failures_ = 0;
};

Arguments parse(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("breaks plans in many ways and counts who notices", "plan_mutations");
  app.add_option("PLAN", arguments.plans, "plans to break");
  app.add_option("--data", arguments.data, "what they train on");
  app.add_option("--mutants", arguments.mutants, "how many broken plans");
  app.add_option("--kinds", arguments.kinds, "names of kinds; default: all")->delimiter(',');
  app.add_option("--runs", arguments.runs, "runs of each accepted plan, with different delays");
  app.add_option("--seed", arguments.seed, "of all choices");
  app.add_option("--keep", arguments.folder, "where to write each broken plan, as KIND-NUMBER.dsplan");
  app.add_flag("--list", arguments.list, "print the names of the kinds");
  app.add_flag("--verbose", arguments.verbose, "a line for each broken plan");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    std::exit(app.exit(error));
  }
  return arguments;
}

} // namespace

int main(int argc, char **argv) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.list) {
    for (const Kind &kind : allKinds())
      std::printf("%s\n", kind.name);
    return 0;
  }
  try {
    std::vector<Subject> subjects;
    for (const std::string &path : arguments.plans) {
      plan::proto::Plan plan = plan::readPlan(path);
      const std::filesystem::path file(path);
      Judge judge(plan, {file.parent_path().string(), arguments.data, arguments.runs});
      subjects.push_back({file.stem().string(), std::move(plan), std::move(judge)});
    }
    return Campaign(arguments, std::move(subjects)).run() ? 0 : 1;
  } catch (const Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
