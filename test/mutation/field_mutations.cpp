//===- field_mutations.cpp - edits any field of plans and counts who notices ===//
//
// field_mutations PLAN... --data DATA [--mutants N] [--from N] [--pairs SHARE] [--seed S] [--keep FOLDER] [--verbose]:
// edits fields at random, one or two a copy, and judges each copy. Prints a table by field; exits with 1 if an edit of
// a field that is proved was accepted although it changes what is trained. docs/fields.md.
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/mutation/FieldEdits.h"
#include "test/mutation/Judge.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace ds;
using namespace ds::mutation;

namespace {

struct Arguments {
  std::vector<std::string> plans;
  std::string data, field, folder;
  int mutants = 100, first = 0;
  int pairs = 20; ///< of a hundred edits: with a second one, of a command's references
  uint64_t seed = 1;
  bool verbose = false;
};

struct Subject {
  std::string name;
  plan::proto::Plan plan;
  Judge judge;
};

using Outcomes = std::array<int, 5>; ///< by Outcome

const char *nameOf(FieldClass fieldClass) {
  constexpr const char *names[] = {"proved", "for people", "trusted"};
  return names[size_t(fieldClass)];
}

class Campaign {
public:
  Campaign(const Arguments &arguments, std::vector<Subject> subjects)
      : arguments_(arguments), subjects_(std::move(subjects)) {}

  /// Returns whether no edit of a proved field was accepted that changes what is trained.
  bool run() {
    for (int mutant = arguments_.first; mutant < arguments_.first + arguments_.mutants; ++mutant)
      plant(subjects_[size_t(mutant) % subjects_.size()], uint64_t(mutant));
    print();
    return survivors_ == 0;
  }

private:
  void plant(Subject &subject, uint64_t number) {
    Random random(arguments_.seed * 1000003 + number);
    plan::proto::Plan broken = subject.plan;
    const FieldEdit edit =
        arguments_.field.empty() ? editField(broken, random) : editField(broken, arguments_.field, random);
    const bool isPair = int(random.below(100)) < arguments_.pairs;
    if (isPair)
      (void)editField(broken, "Command.reference", random);
    if (edit.what.empty() || !seen_.insert(subject.name + broken.SerializeAsString()).second)
      return;
    const Judgement judgement = subject.judge.judge(broken);
    ++counts_[edit.field][size_t(judgement.outcome)];
    const bool harmful = judgement.outcome == Outcome::Missed || judgement.outcome == Outcome::Load;
    const bool survives = harmful && useOf(edit.field).fieldClass == FieldClass::Proved;
    survivors_ += survives;
    if (survives && !arguments_.folder.empty())
      plan::writePlanFile(arguments_.folder + "/" + edit.field + "-" + std::to_string(number) + ".dsplan", broken);
    if (survives || arguments_.verbose)
      std::fprintf(stderr, "%s%llu: %s of %s %s%s: %s\n", survives ? "SURVIVES " : "",
                   static_cast<unsigned long long>(number), edit.field.c_str(), subject.name.c_str(), edit.what.c_str(),
                   isPair ? ", with a pair" : "", judgement.sentence.c_str());
  }

  void print() const {
    Outcomes sum{};
    std::printf("| field | class | planted | refused by the reader | by the checker | at load | accepted, bits equal | "
                "accepted, other bits |\n|---|---|---|---|---|---|---|---|\n");
    for (const auto &[field, outcomes] : counts_) {
      int planted = 0;
      for (size_t i = 0; i < sum.size(); ++i) {
        planted += outcomes[i];
        sum[i] += outcomes[i];
      }
      printRow(field, nameOf(useOf(field).fieldClass), planted, outcomes);
    }
    printRow("all", "", sum[0] + sum[1] + sum[2] + sum[3] + sum[4], sum);
  }

  static void printRow(const std::string &field, const char *fieldClass, int planted, const Outcomes &outcomes) {
    std::printf("| %s | %s | %d | %d | %d | %d | %d | %d |\n", field.c_str(), fieldClass, planted, outcomes[0],
                outcomes[1], outcomes[2], outcomes[3], outcomes[4]);
  }

  const Arguments &arguments_;
  std::vector<Subject> subjects_;
  std::map<std::string, Outcomes> counts_; // by field
  std::set<std::string> seen_;
  int survivors_ = 0;
};

Arguments parse(int argc, char **argv) {
  Arguments arguments;
  bool list = false;
  CLI::App app("edits any field of plans and counts who notices", "field_mutations");
  app.add_option("PLAN", arguments.plans, "plans to edit");
  app.add_option("--data", arguments.data, "what they train on");
  app.add_option("--mutants", arguments.mutants, "how many edited plans");
  app.add_option("--from", arguments.first, "number of the first: a survivor is made again by its own");
  app.add_option("--field", arguments.field, "Message.field to edit; default: all, each as often");
  app.add_option("--pairs", arguments.pairs, "of a hundred: with a second edit, of a command's references");
  app.add_option("--seed", arguments.seed, "of all choices");
  app.add_option("--keep", arguments.folder, "where to write each plan that survives, as FIELD-NUMBER.dsplan");
  app.add_flag("--list", list, "print every field with its class and why");
  app.add_flag("--verbose", arguments.verbose, "a line for each edited plan");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    std::exit(app.exit(error));
  }
  if (list) {
    for (const std::string &field : allFields())
      std::printf("| %s | %s | %s |\n", field.c_str(), nameOf(useOf(field).fieldClass), useOf(field).why.c_str());
    std::exit(0);
  }
  return arguments;
}

} // namespace

int main(int argc, char **argv) {
  const Arguments arguments = parse(argc, argv);
  try {
    std::vector<Subject> subjects;
    for (const std::string &path : arguments.plans) {
      plan::proto::Plan plan = plan::readPlan(path);
      const std::filesystem::path file(path);
      Judge judge(plan, {.folder = file.parent_path().string(), .data = arguments.data, .runs = 1, .steps = 2});
      subjects.push_back({file.stem().string(), std::move(plan), std::move(judge)});
    }
    return Campaign(arguments, std::move(subjects)).run() ? 0 : 1;
  } catch (const Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
