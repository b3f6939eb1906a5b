//===- EndRulesTest.cpp - what runs leave behind, and what ranks share -----===//
#include "compiler/check/Check.h"
#include "runtime/plan/format/PlanReader.h"
#include "test/unit/runtime/PipelinePlan.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

namespace ds::check {
namespace {

using namespace ds::test;

/// Two stages on two data-parallel ranks each.
struct Stages {
  proto::Plan plan = pipelinePlan(3, 2).plan;

  proto::Role &role(int index) { return *plan.mutable_roles(index); }
  proto::Routine &routine(int stage, const std::string &name) {
    for (proto::Routine &one : *role(stage).mutable_routines())
      if (one.name() == name)
        return one;
    throw std::runtime_error("no routine " + name);
  }
  uint32_t buffer(int stage, const std::string &name) {
    for (int i = 0; i < role(stage).buffers_size(); ++i)
      if (role(stage).buffers(i).name() == name)
        return uint32_t(i);
    throw std::runtime_error("no buffer " + name);
  }
  PlanBuilder::Tensor floats(int stage, const std::string &name, const Shape &shape) {
    return {buffer(stage, name), DType::F32, shape};
  }

  /// A collective in place behind the last command of a routine, over the data ranks, on the queue of its first.
  proto::Command &addCollective(int stage, const std::string &name, proto::CollectiveCommand::Kind kind,
                                const PlanBuilder::Tensor &tensor) {
    proto::Command &command = *routine(stage, name).add_commands();
    command.set_queue(routine(stage, name).commands(0).queue());
    command.mutable_collective()->set_kind(kind);
    proto::CollectivePart &part = *command.mutable_collective()->add_parts();
    *part.mutable_source() = operandOf(tensor, proto::Operand::READ);
    *part.mutable_target() = operandOf(tensor, proto::Operand::WRITE);
    return command;
  }
  void addFill(int stage, const std::string &name, const PlanBuilder::Tensor &tensor) {
    proto::Command &command = *routine(stage, name).add_commands();
    command.set_queue(routine(stage, name).commands(0).queue());
    *command.mutable_fill()->mutable_target() = operandOf(tensor, proto::Operand::WRITE);
  }

  std::string verdict() const {
    const std::optional<Finding> finding = checkPlan(plan, World::Open);
    return finding ? finding->rule + ": " + finding->sentence : "sound";
  }
};

#define EXPECT_VERDICT(stages, TEXT) EXPECT_NE((stages).verdict().find(TEXT), std::string::npos) << (stages).verdict()

TEST(EndRules, AcceptAPlanThatIsRight) { EXPECT_EQ(Stages().verdict(), "sound"); }

TEST(EndRules, RefuseAConstantThatAStepOverwrites) {
  Stages zeroed;
  zeroed.addFill(1, "update", zeroed.floats(1, "dy", {1, 2}));
  EXPECT_VERDICT(zeroed, "coverage: program step, rank 2: at its end buffer");
  EXPECT_VERDICT(zeroed, "(dy) holds the constant 0.000000 from its byte 0 on");
  EXPECT_VERDICT(zeroed, "(fill) of role stage1 wrote it");
}

TEST(EndRules, RefuseWeightsThatAreSummedOnceMore) {
  Stages sum;
  proto::Command &command =
      sum.addCollective(1, "update", proto::CollectiveCommand::ALL_REDUCE, sum.floats(1, "c", {3, 2}));
  proto::Operand &scratch = *command.mutable_collective()->mutable_parts(0)->mutable_scratch();
  scratch = sum.routine(1, "backward").commands(2).collective().parts(0).scratch();
  proto::Life &life = *sum.role(1).mutable_buffers(int(scratch.buffer()))->add_lives();
  life.set_birth_routine(4);
  life.set_birth_command(uint32_t(sum.routine(1, "update").commands_size() - 1));
  life.set_death_routine(4);
  life.set_death_command(life.birth_command());
  EXPECT_VERDICT(sum, "(c) holds the sum over ranks of c after its update from its byte 0 on");
}

TEST(EndRules, RefuseAPartThatIsSummedTwice) {
  Stages twice;
  for (proto::Command &command : *twice.routine(1, "backward").mutable_commands())
    if (command.has_collective()) {
      const proto::CollectivePart part = command.collective().parts(0);
      *command.mutable_collective()->add_parts() = part;
    }
  EXPECT_VERDICT(twice, "coverage: program step");
  EXPECT_VERDICT(twice, "what another of its parts has in");
}

TEST(EndRules, RefuseAMetricThatIsLeftOut) {
  Stages silent;
  silent.role(0).mutable_programs(0)->clear_metrics();
  EXPECT_VERDICT(silent, "meaning: program step: the reference program yields loss, which is no metric of role");
  Stages other; // rank 0 has the metrics that are shown
  other.role(1).mutable_programs(0)->clear_metrics();
  EXPECT_EQ(other.verdict(), "sound");
}

TEST(EndRules, RefuseAStepThatCountsTwice) {
  Stages twice;
  proto::Routine &update = twice.routine(0, "update");
  *update.add_commands() = update.commands(4);
  EXPECT_VERDICT(twice,
                 "(step) holds step after an update after an update from its byte 0 on, not step after an update from");
}

TEST(EndRules, RefuseTheFirstRanksActivation) {
  Stages first;
  first.addCollective(1, "forward", proto::CollectiveCommand::BROADCAST, first.floats(1, "h", {1, 3}));
  EXPECT_VERDICT(first, "the first rank's train.matmul h");
  Stages same; // of a constant, it is everybody's
  same.addCollective(1, "forward", proto::CollectiveCommand::BROADCAST, same.floats(1, "dy", {1, 2}));
  EXPECT_EQ(same.verdict(), "sound");
}

TEST(EndRules, RefuseSamplesThatAreDealtOutAlongAnotherAxis) {
  Stages other;
  other.plan.mutable_inputs(0)->mutable_placement()->mutable_axes(0)->set_axis(0);
  EXPECT_VERDICT(other, "operand 0 holds another rank's train.matmul h, but train.matmul y takes train.matmul h");
}

TEST(EndRules, RefuseASlotOnWhatOutlivesTheRun) {
  Stages late;
  late.role(1)
      .mutable_buffers(int(late.buffer(1, "h")))
      ->set_slot_offsets(0, late.role(1).buffers(int(late.buffer(1, "c"))).offset());
  EXPECT_VERDICT(late, "writes buffer");
}

TEST(EndRules, RefuseAVariableThatAnEvaluationWrites) {
  Stages evaluation;
  for (int stage : {0, 1}) {
    proto::Program &program = *evaluation.role(stage).add_programs();
    program.set_name("evaluate");
    *program.add_calls() = evaluation.role(stage).programs(0).calls(0);
    evaluation.role(stage).mutable_routines(0)->set_name("begin");
  }
  for (int stage : {0, 1})
    for (proto::Buffer &buffer : *evaluation.role(stage).mutable_buffers())
      if (buffer.lives_size() > 0 && buffer.lives(0).birth_routine() == 0) {
        proto::Life &life = *buffer.add_lives();
        life = buffer.lives(0);
        life.set_program(1);
        life.set_death_routine(0);
        life.set_death_command(1);
      }
  EXPECT_EQ(evaluation.verdict(), "sound");
  evaluation.addFill(1, "begin", evaluation.floats(1, "c", {3, 2}));
  EXPECT_VERDICT(evaluation, "(c); program evaluate leaves weights and state as they are");
}

} // namespace
} // namespace ds::check
