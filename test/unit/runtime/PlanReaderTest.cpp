//===- PlanReaderTest.cpp - every rule of a plan, broken once -------------===//
#include "runtime/plan/format/PlanReader.h"
#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/BadPlan.h"
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PlanBuilder.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace ds::test {

/// A plan with one of everything:
///   forward  0 feed tokens -> x (queue in, signals fed)   1 sum x -> loss (waits for fed)   2 fill g   3 copy loss ->
///   kept
proto::Plan soundPlan() {
  PlanBuilder b(2, 3);
  b.plan.add_weight_files()->set_path("w.bin");
  b.plan.mutable_weight_files(0)->set_size(100);
  const uint32_t compute = b.queue("compute"), in = b.queue("in", proto::Queue::COPY_IN);
  const uint32_t fed = b.event("fed"), freed = b.event("freed");
  const auto weight = b.variable("weight", DType::F32, {4}, 0.5);
  const uint32_t tokens = b.input("tokens", DType::I64, {2, 8});
  b.plan.mutable_inputs(0)->set_tokens("next");
  const auto x = b.tensor("x", DType::I64, {2, 8}, proto::Buffer::SLOT, 2);
  const auto loss = b.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
  const auto kept = b.tensor("kept", DType::F32, {}, proto::Buffer::CALL);
  const uint32_t forward = b.routine("forward");
  auto &feed = b.feed(forward, in, tokens, x);
  wait(feed, freed, 2);
  signal(feed, fed);
  auto &sum = b.kernel(forward, compute, "sum", "rw", {x, loss});
  wait(sum, fed);
  signal(sum, freed);
  b.implements(sum, "h.0");
  b.fill(forward, compute, weight);
  b.copy(forward, compute, loss, kept);
  const uint32_t step = b.program("step");
  for (uint32_t m = 0; m < 3; ++m)
    b.call(step, forward, m);
  b.metric(step, "loss", loss);
  b.life(x, step, forward, 0, forward, 1);
  b.life(kept, step, forward, 3, forward, 3);
  auto &reference = *b.plan.mutable_reference();
  reference.add_values()->set_dtype(proto::DTYPE_F32);
  reference.mutable_ops(0)->add_operands(0);
  auto *attribute = b.role().mutable_routines(0)->mutable_commands(1)->mutable_kernel()->add_attributes();
  attribute->set_name("axes");
  attribute->set_integer(1);
  return b.plan;
}

namespace {

/// An arena of the first role in a file, behind its others.
proto::Arena &inFile(proto::Plan &plan) {
  plan.mutable_nvme()->set_folder("drive");
  plan.mutable_nvme()->set_block_bytes(4096);
  plan.mutable_nvme()->set_queue_depth(1);
  proto::Arena &arena = *plan.mutable_roles(0)->add_arenas();
  arena.set_space("nvme");
  arena.set_bytes(1 << 20);
  return arena;
}

/// A queue of a kind behind the first role's others.
void addQueue(proto::Plan &plan, proto::Queue::Kind kind) {
  proto::Queue &queue = *plan.mutable_roles(0)->add_queues();
  queue.set_name("beside");
  queue.set_kind(kind);
}

/// Makes the variable, weight, live in a file, and adds a place for its next value behind it.
proto::Buffer &nextOfWeight(proto::Plan &plan) {
  inFile(plan);
  role(plan).add_queues()->set_name("file");
  role(plan).mutable_queues(2)->set_kind(proto::Queue::IO);
  role(plan).add_arenas()->set_space("host");
  role(plan).mutable_arenas(2)->set_bytes(64);
  buffer(plan, 0).set_arena(1);
  buffer(plan, 0).set_offset(0);
  proto::Command &store = command(plan, 2); // instead of a fill
  const proto::Operand weight = store.fill().target();
  store.set_queue(2);
  *store.mutable_copy()->mutable_target() = weight;
  *store.mutable_copy()->mutable_source() = weight;
  store.mutable_copy()->mutable_source()->set_access(proto::Operand::READ);
  store.mutable_copy()->mutable_source()->set_buffer(4);
  proto::Buffer &near = *role(plan).add_buffers();
  near = buffer(plan, 0);
  near.set_name("near");
  near.set_arena(2);
  near.clear_variable();
  proto::Buffer &next = *role(plan).add_buffers();
  next = buffer(plan, 0);
  next.set_name("weight::next");
  next.set_offset(4096);
  next.clear_variable();
  next.set_next_of(0);
  return next;
}

/// Makes the last call of the program its tail.
proto::Tail &tail(proto::Plan &plan) {
  proto::Tail &tail = *program(plan).mutable_tail();
  tail.set_first_call(2);
  *tail.mutable_unless_one() = program(plan).metrics(0).source();
  return tail;
}

/// A code, which the kernel does not name yet.
proto::DeviceCode &code(proto::Plan &plan) {
  plan.mutable_machine()->set_device("cuda");
  proto::DeviceCode &code = *plan.add_codes();
  code.set_name("elementwise_1");
  code.set_text(".version 7.0\n.target sm_80\n");
  code.set_blocks(3);
  code.set_threads(256);
  return code;
}

/// Two algorithms, which no kernel names yet.
proto::Tuning &tuning(proto::Plan &plan) {
  plan.mutable_machine()->set_device("cuda");
  proto::Tuning &tuning = *plan.mutable_tuning();
  tuning.set_gpu("NVIDIA H100 80GB HBM3");
  tuning.set_cublaslt(130100);
  tuning.add_algorithms(std::string(64, 'a'));
  tuning.add_algorithms(std::string(64, 'b'));
  return tuning;
}

/// The kernel as one that may name a code.
proto::KernelCommand &elementwise(proto::Plan &plan) {
  code(plan);
  proto::KernelCommand &kernel = *command(plan, 1).mutable_kernel();
  kernel.set_kernel("elementwise");
  return kernel;
}
proto::Operand &operand(proto::Plan &plan, int i) { return *command(plan, 1).mutable_kernel()->mutable_operands(i); }
proto::Life &life(proto::Plan &plan) { return *buffer(plan, 1).mutable_lives(0); }

/// A second variable, the gradient of the first.
proto::Variable &gradient(proto::Plan &plan) {
  proto::Variable &variable = *plan.add_variables();
  variable = plan.variables(0);
  variable.set_name("gradient");
  variable.set_kind(proto::Variable::GRADIENT);
  variable.set_of(0);
  return variable;
}
proto::Routine &routine(proto::Plan &plan) { return *role(plan).mutable_routines(0); }

class PlanReaderRefuses : public testing::TestWithParam<BadPlan> {};

TEST(PlanReader, TakesASoundPlan) {
  EXPECT_EQ(errorOf([] { plan::validatePlan(soundPlan()); }), "no error");
}

TEST(PlanReader, TakesAGradientAndAPhase) {
  proto::Plan plan = soundPlan();
  gradient(plan);
  routine(plan).set_phase(proto::Routine::FORWARD);
  routine(plan).set_stage(0);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST_P(PlanReaderRefuses, ABrokenRule) {
  proto::Plan plan = soundPlan();
  GetParam().spoil(plan);
  EXPECT_ERROR(plan::validatePlan(plan), GetParam().error);
}

const std::vector<BadPlan> modelRules = {
    BAD(Device, "device is neither cpu nor cuda", p.mutable_machine()->set_device("tpu")),
    BAD(Isa, "machine: its name holds the control character 10", p.mutable_machine()->set_isa("sm_90\n")),
    BAD(LinkSpeed, "a link's bytes per second are no finite number above 0", p.mutable_machine()->add_links()),
    BAD(LinkLatency, "a link's latency is negative or not finite",
        p.mutable_machine()->add_links()->set_bytes_per_second(1);
        p.mutable_machine()->mutable_links(0)->set_latency_seconds(-1)),
    BAD(Rates, "one of its rates is no finite number above 0", p.mutable_machine()->mutable_rates()),
    BAD(CommandTime, "the time of a command is negative or not finite",
        proto::Rates &rates = *p.mutable_machine()->mutable_rates();
        rates.set_bytes_per_second(1); rates.set_float32_flops(1); rates.set_tf32_flops(1); rates.set_bfloat16_flops(1);
        rates.set_attention_flops(1); rates.set_command_seconds(-1)),
    BAD(Threads, "0 threads", p.mutable_machine()->set_threads(0)),
    BAD(Alignment, "no power of two", p.mutable_machine()->set_alignment(48)),
    BAD(AlignmentZero, "no power of two", p.mutable_machine()->set_alignment(0)),
    BAD(Axis, "none of pipe, data, expert, tensor", p.mutable_world()->add_axes()->set_name("depth")),
    BAD(AxisZero, "of size 0", p.mutable_world()->add_axes()->set_name("data")),
    BAD(
        AxisTwice, "two axes data",
        for (int i = 0; i < 2; ++i) {
          auto *axis = p.mutable_world()->add_axes();
          axis->set_name("data");
          axis->set_size(1);
        }),
    BAD(AxisHuge, "more than 1048576 ranks",
        {
          auto *axis = p.mutable_world()->add_axes();
          axis->set_name("data");
          axis->set_size(4000000000u);
        }),
    BAD(BatchTriple, "train_batch_size 7 is not", p.mutable_training()->set_train_batch_size(7)),
    BAD(MicroBatch, "at least 1", p.mutable_training()->set_micro_batch_size(0)),
    BAD(CheckpointBufferHuge, "checkpoint_buffer_bytes is beyond 2^40",
        p.mutable_training()->set_checkpoint_buffer_bytes(UINT64_MAX)),
    BAD(MicroBatchHuge, "beyond 2^40", p.mutable_training()->set_micro_batch_size(UINT64_MAX)),
    BAD(RecomputedLayers, "5 layers that repeat something are more than its 4 layers",
        p.mutable_recompute()->set_layers(4);
        p.mutable_recompute()->set_layers_again(5)),
    BAD(RecomputeLevel, "its level, 3, is above the highest, 2", p.mutable_recompute()->set_levels(2);
        p.mutable_recompute()->set_level(3)),
    BAD(NvmeFolder, "nvme: it names no folder", inFile(p); p.mutable_nvme()->clear_folder()),
    BAD(NvmeBlock, "block_bytes is 6000, but must be a multiple of 4096", inFile(p);
        p.mutable_nvme()->set_block_bytes(6000)),
    BAD(NvmeDepth, "queue_depth is 2000, but must be from 1 to 1024", inFile(p);
        p.mutable_nvme()->set_queue_depth(2000)),
    BAD(Numerics, "none of bit-equal", p.set_numerics("exact")),
    BAD(WeightFileAbsolute, "empty or absolute", p.mutable_weight_files(0)->set_path("/etc/passwd")),
    BAD(ConfigStatus, "none of honoured", p.add_config()->set_status("ignored")),
    BAD(ConfigLong, "more than 16 MiB", p.set_config_json(std::string((16 << 20) + 1, ' '))),
    BAD(ModelName, "control character 10", p.set_model("a\nb")),
    BAD(ModelLong, "more than 4096", p.set_model(std::string(4097, 'a'))),
    BAD(RanksOdd, "not pairs", role(p).add_ranks(0)),
    BAD(RanksDescending, "not ascending", role(p).set_ranks(0, 1)),
    BAD(RanksTooMany, "cover 2 ranks, but the world has 1", role(p).set_ranks(1, 1)),
    BAD(RanksGap, "belongs to no role or to two", role(p).set_ranks(0, 1); role(p).set_ranks(1, 1)),
    BAD(RoleTwice, "another role has its ranks too\n  note: role 0 (all) has them first",
        *p.add_roles() = soundPlan().roles(0)),
    BAD(NoRole, "cover 0 ranks", p.clear_roles()),
};
INSTANTIATE_TEST_SUITE_P(Model, PlanReaderRefuses, testing::ValuesIn(modelRules),
                         [](const auto &info) { return info.param.name; });

const std::vector<BadPlan> variableRules = {
    BAD(NoName, "has no name", variable(p, 0).set_name("")),
    BAD(NotesName, "safetensors files keep notes", variable(p, 0).set_name("__metadata__")),
    BAD(NotesAlias, "safetensors files keep notes", variable(p, 0).add_aliases("__metadata__")),
    BAD(NameTwice, "another variable or alias has its name\n  note: variable 0 (", *p.add_variables() = variable(p, 0)),
    BAD(AliasTwice, "names something else too", variable(p, 0).add_aliases("weight")),
    BAD(Kind, "no variable kind 9", variable(p, 0).set_kind(proto::Variable::Kind(9))),
    BAD(OfIndex, "names variable 7, but there are 2", gradient(p).set_of(7)),
    BAD(OfKind, "it is of variable weight, but only gradients and optimizer state are",
        gradient(p).set_kind(proto::Variable::BUFFER)),
    BAD(OfNoParameter, "it is of variable weight, which is no parameter", gradient(p);
        variable(p, 0).set_kind(proto::Variable::BUFFER)),
    BAD(OfShape, "its dtype or shape is not that of parameter weight", gradient(p).set_shape(0, 2)),
    BAD(OfDType, "its dtype or shape is not that of parameter weight", gradient(p).set_dtype(proto::DTYPE_F64)),
    BAD(DTypeUnknown, "no dtype 77", variable(p, 0).set_dtype(proto::DType(77))),
    BAD(DTypeNone, "no dtype 0", variable(p, 0).set_dtype(proto::DTYPE_UNSPECIFIED)),
    BAD(Negative, "negative dimension", variable(p, 0).set_shape(0, -4)),
    BAD(Overflow, "more than 2^62 bytes", variable(p, 0).set_shape(0, INT64_MAX); variable(p, 0).add_shape(INT64_MAX)),
    BAD(OverflowBehindZero, "more than 2^62 bytes", variable(p, 0).set_shape(0, 0);
        variable(p, 0).add_shape(INT64_MAX)),
    BAD(Rank, "more than 16", for (int i = 0; i < 20; ++i) variable(p, 0).add_shape(1)),
    BAD(NoSource, "no source", variable(p, 0).clear_source()),
    BAD(LiteralSize, "literal has 3 bytes, but its shape needs 16",
        variable(p, 0).mutable_source()->set_literal("abc")),
    BAD(RangeFile, "names weight file 1, but there are 1",
        variable(p, 0).mutable_source()->mutable_range()->set_file(1)),
    BAD(RangeEnd, "pass the end of weight file 0 of 100",
        {
          auto *range = variable(p, 0).mutable_source()->mutable_range();
          range->set_offset(90);
          range->set_length(16);
        }),
    BAD(RangeWraps, "pass the end of weight file 0 of 100",
        {
          auto *range = variable(p, 0).mutable_source()->mutable_range();
          range->set_offset(UINT64_MAX - 7);
          range->set_length(16);
        }),
    BAD(RangeLength, "range has 12 bytes, but its shape needs 16",
        variable(p, 0).mutable_source()->mutable_range()->set_length(12)),
    BAD(RangeStoredLength, "range has 16 bytes, but its shape needs 8",
        {
          auto *range = variable(p, 0).mutable_source()->mutable_range();
          range->set_length(16);
          range->set_dtype("BF16");
        }),
    BAD(RangeStoredNarrowed, "lie in their file as 'F64', which is not widened to float32",
        variable(p, 0).mutable_source()->mutable_range()->set_dtype("F64")),
    BAD(RangeStoredSame, "lie in their file as 'F32', which is not widened to float32",
        variable(p, 0).mutable_source()->mutable_range()->set_dtype("F32")),
    BAD(RangeStoredInteger, "lie in their file as 'F16', which is not widened to int32",
        variable(p, 0).set_dtype(proto::DTYPE_I32);
        variable(p, 0).mutable_source()->mutable_range()->set_dtype("F16")),
    BAD(Fill, "fill value is no int32", variable(p, 0).set_dtype(proto::DTYPE_I32)),
    BAD(Distribution, "neither normal nor uniform",
        variable(p, 0).mutable_source()->mutable_random()->set_distribution("cauchy")),
    BAD(Deviation, "deviation is negative",
        {
          auto *random = variable(p, 0).mutable_source()->mutable_random();
          random->set_distribution("normal");
          random->set_deviation(-1);
        }),
    BAD(RandomNaN, "not finite",
        {
          auto *random = variable(p, 0).mutable_source()->mutable_random();
          random->set_distribution("normal");
          random->set_mean(std::nan(""));
        }),
    BAD(RandomInteger, "random values need a float dtype",
        {
          variable(p, 0).set_dtype(proto::DTYPE_I32);
          variable(p, 0).mutable_source()->mutable_random()->set_distribution("uniform");
        }),
    BAD(InputTwice, "another input has it", *p.add_inputs() = p.inputs(0)),
    BAD(InputBatch, "does not begin with the micro-batch of 2", p.mutable_inputs(0)->set_shape(0, 3)),
    BAD(InputScalar, "does not begin with the micro-batch", p.mutable_inputs(0)->clear_shape()),
    BAD(InputTokens, "none of '', same, next", p.mutable_inputs(0)->set_tokens("previous")),
    BAD(InputTokensFloat, "tokens need an integer dtype", p.mutable_inputs(0)->set_dtype(proto::DTYPE_F32)),
    BAD(InputLimitHuge, "limit is beyond", p.mutable_inputs(0)->set_limit(UINT64_MAX)),
    BAD(InputLimitFloat, "limits are for integers",
        {
          p.mutable_inputs(0)->set_tokens("");
          p.mutable_inputs(0)->set_dtype(proto::DTYPE_F32);
          p.mutable_inputs(0)->set_limit(3);
        }),
    BAD(ReferenceValue, "names reference value 8, but there are 1",
        p.mutable_reference()->mutable_ops(0)->add_results(8)),
    BAD(ReferenceOperand, "names reference value 9", p.mutable_reference()->mutable_ops(0)->add_operands(9)),
    BAD(ReferenceVariable, "names variable 1", p.mutable_reference()->mutable_ops(0)->add_variables(1)),
    BAD(ReferenceOp, "does not say which op", p.mutable_reference()->mutable_ops(0)->set_op("")),
    BAD(ReferenceRead, "train.read names no variable", p.mutable_reference()->mutable_ops(0)->set_op("train.read")),
    BAD(ReferenceStore, "train.reshape names no value", p.mutable_reference()->mutable_ops(0)->set_op("train.reshape");
        p.mutable_reference()->mutable_ops(0)->clear_operands()),
    BAD(ReferenceFunction, "none of microbatch", p.mutable_reference()->mutable_ops(0)->set_function("main")),
    BAD(ReferenceShape, "negative dimension", p.mutable_reference()->mutable_values(0)->add_shape(-1)),
    BAD(ReferenceAttribute, "it has no value", p.mutable_reference()->mutable_ops(0)->add_attributes()->set_name("a")),
};
INSTANTIATE_TEST_SUITE_P(Variables, PlanReaderRefuses, testing::ValuesIn(variableRules),
                         [](const auto &info) { return info.param.name; });

const std::vector<BadPlan> storageRules = {
    BAD(Space, "none of device, host, nvme", role(p).mutable_arenas(0)->set_space("tape")),
    BAD(FileNowhere, "arena 1: it is in space nvme, but the plan does not say where its files lie", inFile(p);
        p.clear_nvme()),
    BAD(NextIndex, "buffer 5 (weight::next): it names buffer 8, but there are 6", nextOfWeight(p).set_next_of(8)),
    BAD(NextScope,
        "it is the next of buffer 0 (weight), so its scope must be PLAN and its space nvme, but they are STEP and nvme",
        nextOfWeight(p).set_scope(proto::Buffer::STEP)),
    BAD(NextSpace, "so its scope must be PLAN and its space nvme, but they are PLAN and host",
        nextOfWeight(p).set_arena(2);
        buffer(p, 5).set_offset(0)),
    BAD(NextHolds, "and takes over what that holds, so it cannot hold a variable or bucket itself",
        nextOfWeight(p).set_variable(0)),
    BAD(NextOfNothing, "it is the next of buffer 4 (near), which holds no variable or bucket that it could take over",
        nextOfWeight(p).set_next_of(4)),
    BAD(NextOfANext, "it is the next of buffer 5 (weight::next), which holds no variable or bucket", nextOfWeight(p);
        *role(p).add_buffers() = buffer(p, 5); buffer(p, 6).set_offset(8192); buffer(p, 6).set_next_of(5)),
    BAD(NextBytes, "but has 8 bytes in arena 1, and that 16 in arena 1; to exchange what they hold they must agree",
        nextOfWeight(p).set_bytes(8)),
    BAD(NextArena, "but has 16 bytes in arena 1, and that 16 in arena 0; to exchange", nextOfWeight(p);
        buffer(p, 0).set_arena(0)),
    BAD(NextTwice,
        "buffer 6 (weight::next): it is the next of buffer 0 (weight), but buffer 5 (weight::next) is that already",
        nextOfWeight(p);
        *role(p).add_buffers() = buffer(p, 5); buffer(p, 6).set_offset(8192)),
    BAD(SharedPage, "no multiple of 4096, the page of a file", inFile(p); buffer(p, 0).set_arena(1);
        buffer(p, 0).set_offset(64)),
    BAD(ArenaHuge, "more than 2^46", role(p).mutable_arenas(0)->set_bytes(UINT64_MAX)),
    BAD(SecondArena, "of which a rank has one", *role(p).add_arenas() = role(p).arenas(0)),
    BAD(Peak, "peak_live_bytes pass", role(p).mutable_arenas(0)->set_peak_live_bytes(1 << 20)),
    BAD(ArenaIndex, "names arena 1, but there are 1", buffer(p, 0).set_arena(1)),
    BAD(Scope, "no scope 0", buffer(p, 0).set_scope(proto::Buffer::SCOPE_UNSPECIFIED)),
    BAD(Category, "no category 0", buffer(p, 0).set_category(proto::Buffer::CATEGORY_UNSPECIFIED)),
    BAD(NoSlots, "0 slots", buffer(p, 0).set_slots(0)),
    BAD(SlotsOfPlan, "only scope SLOT", buffer(p, 0).set_slots(2)),
    BAD(SlotsWithoutOffsets, "it has 9 slots and offsets for 2", buffer(p, 1).set_slots(9)),
    BAD(OffsetsWithoutSlots, "it has 2 slots and offsets for 3", buffer(p, 1).add_slot_offsets(0)),
    BAD(SlotPastEnd, "pass the end of arena 0 (device)", buffer(p, 1).set_slot_offsets(0, 1 << 20)),
    BAD(SlotOverflow, "pass the end of arena 0", buffer(p, 1).set_slot_offsets(0, UINT64_MAX - 63)),
    BAD(OffsetPastEnd, "pass the end of arena 0", buffer(p, 0).set_offset(1 << 20)),
    BAD(OffsetOverflow, "pass the end of arena 0", buffer(p, 0).set_offset(UINT64_MAX - 63)),
    BAD(Bytes, "pass the end of arena 0", buffer(p, 0).set_bytes(1 << 20)),
    BAD(Misaligned, "no multiple of the machine's alignment 64", buffer(p, 0).set_offset(8)),
    BAD(SlotMisaligned, "no multiple of the machine's alignment 64", buffer(p, 1).set_slot_offsets(0, 136)),
    BAD(VariableIndex, "names variable 4, but there are 1", buffer(p, 0).set_variable(4)),
    BAD(VariableScope, "its scope must be PLAN", buffer(p, 2).set_variable(0)),
    BAD(VariableBytes, "it has 15 bytes, but of variable weight a rank holds ", buffer(p, 0).set_bytes(15)),
    BAD(PlanLives, "it lives always", *buffer(p, 0).add_lives() = life(p)),
    BAD(LifeProgram, "names program 1", life(p).set_program(1)),
    BAD(LifeRoutine, "names routine 5", life(p).set_death_routine(5)),
    BAD(LifeCommand, "names command 4, but there are 4", life(p).set_death_command(4)),
    BAD(LifeBackwards, "before its birth", life(p).set_birth_command(2)),
    BAD(LifeCall, "its scope is CALL", role(p).add_routines()->add_commands()->CopyFrom(command(p, 2));
        buffer(p, 3).mutable_lives(0)->set_death_routine(1); buffer(p, 3).mutable_lives(0)->set_death_command(0)),
};
INSTANTIATE_TEST_SUITE_P(Storage, PlanReaderRefuses, testing::ValuesIn(storageRules),
                         [](const auto &info) { return info.param.name; });

const std::vector<BadPlan> commandRules = {
    BAD(QueueName, "another queue has it", role(p).mutable_queues(1)->set_name("compute")),
    BAD(FileOnCompute, "it copies to or from space nvme, but queue compute is not of kind IO", inFile(p);
        buffer(p, 3).set_arena(1); buffer(p, 3).set_offset(0)),
    BAD(FileToDevice, "it copies between space nvme and space device; only host memory may be there", inFile(p);
        buffer(p, 3).set_arena(1); buffer(p, 3).set_offset(0);
        role(p).mutable_queues(int(command(p, 3).queue()))->set_kind(proto::Queue::IO);
        for (int c = 0; c < 3; ++c) command(p, c).set_queue(1)),
    BAD(KernelOnIo, "it is no copy, but queue compute is of kind IO, which copies to and from space nvme alone",
        role(p).mutable_queues(int(command(p, 1).queue()))->set_kind(proto::Queue::IO)),
    BAD(QueueKind, "no queue kind 0", role(p).mutable_queues(1)->set_kind(proto::Queue::KIND_UNSPECIFIED)),
    BAD(QueueIndex, "names queue 2, but there are 2", command(p, 0).set_queue(2)),
    BAD(WaitIndex, "names event 2", command(p, 1).mutable_waits(0)->set_event(2)),
    BAD(WaitDelay, "more than 2^20", command(p, 1).mutable_waits(0)->set_delay(UINT32_MAX)),
    BAD(SignalIndex, "names event 7", command(p, 1).add_signals(7)),
    BAD(ReferenceIndex, "names reference op 1", command(p, 1).add_reference(1)),
    BAD(NoKind, "does nothing that this build knows", command(p, 1).clear_kind()),
    BAD(NoKernel, "names no kernel", command(p, 1).mutable_kernel()->set_kernel("")),
    BAD(AttributeTwice, "two attributes axes",
        *command(p, 1).mutable_kernel()->add_attributes() = command(p, 1).kernel().attributes(0)),
    BAD(AttributeNoName, "an attribute has no name", command(p, 1).mutable_kernel()->add_attributes()->set_integer(1)),
    BAD(OperandBuffer, "names buffer 4, but there are 4", operand(p, 0).set_buffer(4)),
    BAD(OperandAccess, "no access 0", operand(p, 0).set_access(proto::Operand::ACCESS_UNSPECIFIED)),
    BAD(OperandTooLong, "pass the end of buffer 1 (x) of 128", operand(p, 0).set_shape(0, 3)),
    BAD(OperandOffset, "pass the end of buffer 1 (x)", operand(p, 0).set_byte_offset(8)),
    BAD(OperandOffsetWraps, "pass the end of buffer 1 (x)", operand(p, 0).set_byte_offset(UINT64_MAX - 7)),
    BAD(OperandMisaligned, "no multiple of its element size 8", operand(p, 0).set_shape(0, 1);
        operand(p, 0).set_byte_offset(4)),
    BAD(OperandSpace,
        "buffer 1 (x) lies in space host, which only copies, and kernels and fills on queues of kind HOST, read and "
        "write",
        role(p).mutable_arenas(0)->set_space("host")),
    BAD(HostOperandSpace,
        "lies in space device, but kernels and fills on queues of kind HOST read and write space host alone",
        role(p).mutable_queues(int(command(p, 1).queue()))->set_kind(proto::Queue::HOST);
        role(p).mutable_routines(0)->mutable_commands()->DeleteSubrange(0, 1)),
    BAD(HostFillSpace,
        "(fill), target: buffer 0 (weight) lies in space device, but kernels and fills on queues of kind HOST",
        role(p).mutable_queues(int(command(p, 2).queue()))->set_kind(proto::Queue::HOST);
        role(p).mutable_routines(0)->mutable_commands()->SwapElements(0, 2)),
    BAD(HostRunsKernels,
        "it is no kernel, fill or copy within host memory, but queue compute is of kind HOST, which runs these alone",
        role(p).mutable_queues(int(command(p, 2).queue()))->set_kind(proto::Queue::HOST);
        role(p).mutable_routines(0)->mutable_commands()->SwapElements(0, 3)),
    BAD(OperandShape, "negative dimension", operand(p, 0).set_shape(0, -1)),
    BAD(FillAccess, "access must be WRITE",
        command(p, 2).mutable_fill()->mutable_target()->set_access(proto::Operand::READ)),
    BAD(FillNothing, "no dtype 0", command(p, 2).mutable_fill()->clear_target()),
    BAD(CopySource, "access must be READ",
        command(p, 3).mutable_copy()->mutable_source()->set_access(proto::Operand::READ_WRITE)),
    BAD(CopyShapes, "both ends must have one dtype and shape",
        command(p, 3).mutable_copy()->mutable_source()->add_shape(1)),
    BAD(CopyDTypes, "both ends must have one dtype and shape",
        command(p, 3).mutable_copy()->mutable_source()->set_dtype(proto::DTYPE_I32)),
    BAD(FeedInput, "names input 1", command(p, 0).mutable_feed()->set_input(1)),
    BAD(FeedShape, "both must have one dtype and shape",
        command(p, 0).mutable_feed()->mutable_target()->set_shape(1, 7)),
};
INSTANTIATE_TEST_SUITE_P(Commands, PlanReaderRefuses, testing::ValuesIn(commandRules),
                         [](const auto &info) { return info.param.name; });

const std::vector<BadPlan> programRules = {
    BAD(Name, "neither step nor evaluate", program(p).set_name("train")),
    BAD(NameTwice, "another program has it", *role(p).add_programs() = program(p)),
    BAD(Phase, "routine 0 (forward): there is no phase 11", routine(p).set_phase(proto::Routine::Phase(11))),
    BAD(PhaseWithoutStage, "routine 0 (forward): its phase is FORWARD, and it does not say of which stage",
        routine(p).set_phase(proto::Routine::FORWARD)),
    BAD(PhaseOfNoStage, "its phase is UPDATE, which is of no stage", routine(p).set_phase(proto::Routine::UPDATE);
        routine(p).set_stage(0)),
    BAD(StageOfNoPhase, "its phase is PHASE_UNSPECIFIED, which is of no stage", routine(p).set_stage(0)),
    BAD(StageIndex, "names stage 1, but there are 1", routine(p).set_phase(proto::Routine::FORWARD);
        routine(p).set_stage(1)),
    BAD(CallRoutine, "names routine 1", program(p).mutable_calls(0)->set_routine(1)),
    BAD(CallMicrobatch, "names micro-batch 3, but a run has 3", program(p).mutable_calls(0)->set_microbatch(3)),
    BAD(MetricTwice, "another metric has it", *program(p).add_metrics() = program(p).metrics(0)),
    BAD(MetricBuffer, "names buffer 9", program(p).mutable_metrics(0)->mutable_source()->set_buffer(9)),
    BAD(MetricShape, "is no scalar", program(p).mutable_metrics(0)->mutable_source()->add_shape(2)),
    BAD(MetricDType, "not float32, float64 or int64",
        program(p).mutable_metrics(0)->mutable_source()->set_dtype(proto::DTYPE_I32)),
    BAD(MetricScope, "must have scope PLAN or STEP", program(p).mutable_metrics(0)->mutable_source()->set_buffer(3)),
    BAD(MetricEnd, "passes the end of buffer 2", program(p).mutable_metrics(0)->mutable_source()->set_byte_offset(4)),
    BAD(MetricAccess, "access must be READ",
        program(p).mutable_metrics(0)->mutable_source()->set_access(proto::Operand::WRITE)),
    BAD(CapturedOnCpu, "program step: it is captured, but a device cpu records no runs; only cuda does",
        program(p).set_captured(true)),
    BAD(CapturedFile, "it is captured, but queue 2 (beside) is of kind IO, whose work the host does",
        program(p).set_captured(true);
        p.mutable_machine()->set_device("cuda"); addQueue(p, proto::Queue::IO)),
    BAD(CapturedHost, "it is captured, but queue 2 (beside) is of kind HOST, whose work the host does",
        program(p).set_captured(true);
        p.mutable_machine()->set_device("cuda"); addQueue(p, proto::Queue::HOST)),
    BAD(CodeOnCpu, "codes: a device cpu runs none; only cuda does", code(p); p.mutable_machine()->set_device("cpu")),
    BAD(CodeName, "code 0: its name is empty or another code has it", code(p).clear_name()),
    BAD(CodeNameTwice, "code 1: its name is empty or another code has it", code(p); code(p)),
    BAD(CodeWithoutText, "code 0: its text has 0 bytes; it must have 1 to 4194304", code(p).clear_text()),
    BAD(CodeText, "code 0: its text holds the byte 0, which no PTX has", code(p).mutable_text()->push_back('\0')),
    BAD(CodeBlocks, "code 0: it is launched as 0 blocks of 256 threads; a GPU takes 1 to 2^31 - 1 of 1 to 1024",
        code(p).set_blocks(0)),
    BAD(CodeThreads, "code 0: it is launched as 3 blocks of 1025 threads", code(p).set_threads(1025)),
    BAD(CodeIndex, "command 1: it names code 1, but there are 1", elementwise(p).set_code(1)),
    BAD(CodeOfAnotherKernel, "it has a code, but only kernel elementwise on a queue of the device may",
        elementwise(p).set_code(0);
        command(p, 1).mutable_kernel()->set_kernel("sum")),
    BAD(TuningOnCpu, "tuning: a device cpu has no cuBLASLt; only cuda does", tuning(p);
        p.mutable_machine()->set_device("cpu")),
    BAD(TuningOfNoGpu, "tuning: it must name a GPU and a version of cuBLASLt", tuning(p).clear_gpu()),
    BAD(TuningOfNoVersion, "tuning: it must name a GPU and a version of cuBLASLt", tuning(p).clear_cublaslt()),
    BAD(AlgorithmBytes, "algorithm 1: it has 63 bytes; cublasLtMatmulAlgo_t has 64",
        tuning(p).mutable_algorithms(1)->pop_back()),
    BAD(AlgorithmTwice, "algorithm 1: it is the same as one before it",
        tuning(p).set_algorithms(1, std::string(64, 'a'))),
    BAD(AlgorithmIndex, "command 1: it names algorithm 2, but there are 2", tuning(p);
        command(p, 1).mutable_kernel()->set_algorithm(2)),
    BAD(AlgorithmOfNoProduct, "it has an algorithm of cuBLASLt, but only a product on a queue of the device may",
        tuning(p);
        command(p, 1).mutable_kernel()->set_algorithm(1)),
    BAD(TailOfARecord, "program step: it is captured and has a tail, but a record is launched whole", tail(p);
        p.mutable_machine()->set_device("cuda"); program(p).set_captured(true)),
    BAD(TailIsAll,
        "program step: its tail begins at call 0, but must begin behind call 0 and before the end, which is at 3",
        tail(p).set_first_call(0)),
    BAD(TailBehindTheEnd, "its tail begins at call 3, but must begin behind call 0 and before the end",
        tail(p).set_first_call(3)),
    BAD(TailBuffer, "program step, unless_one of the tail: it names buffer 9",
        tail(p).mutable_unless_one()->set_buffer(9)),
    BAD(TailDType, "unless_one of the tail: it is int32, not float32 or float64",
        tail(p).mutable_unless_one()->set_dtype(proto::DTYPE_I32)),
    BAD(TailShape, "unless_one of the tail: its shape [2] is no scalar", tail(p).mutable_unless_one()->add_shape(2)),
    BAD(TailEnd, "unless_one of the tail: it passes the end of buffer 2",
        tail(p).mutable_unless_one()->set_byte_offset(4)),
    BAD(TailAccess, "unless_one of the tail: its access must be READ",
        tail(p).mutable_unless_one()->set_access(proto::Operand::WRITE)),
    BAD(TailStride, "unless_one of the tail: it has a rank_stride, but every rank must find the same value",
        tail(p).mutable_unless_one()->set_rank_stride(4)),
    BAD(TailScope, "its buffer must have scope PLAN or STEP to be there when the calls before the tail have ended",
        tail(p).mutable_unless_one()->set_buffer(3)),
    // What the sum waits for is only fed in the tail.
    BAD(TailSignals, "queue compute would wait for ever where the tail is not run, for event 0 (fed) to reach 1",
        tail(p).set_first_call(1);
        *role(p).add_routines() = routine(p); role(p).mutable_routines(1)->mutable_commands()->DeleteSubrange(1, 3);
        command(p, 0).clear_signals(); program(p).mutable_calls()->RemoveLast();
        program(p).mutable_calls(1)->set_routine(1); program(p).mutable_calls(1)->set_microbatch(0)),
    // Nothing raises event fed any more.
    BAD(NeverSignalled, "queue compute would wait for ever for event 0 (fed) to reach 1; it stays at 0",
        command(p, 0).clear_signals()),
    // The feed of micro-batch 1 waits for the sum of micro-batch 1, which waits for that feed.
    BAD(Cycle, "which could end that, stands before program step, call ", command(p, 0).mutable_waits(0)->set_delay(0)),
    // Micro-batch 2 is never fed, and nobody asks for it: but the call of micro-batch 1 now stands before that of 0.
    BAD(CallsOutOfOrder, "would wait for ever", program(p).mutable_calls(0)->set_microbatch(2);
        program(p).mutable_calls(1)->set_microbatch(0); program(p).mutable_calls(2)->set_microbatch(1)),
    // Both on one queue: the wait stands before the signal that would end it.
    BAD(WaitBeforeSignal, "would wait for ever", command(p, 0).clear_waits(); command(p, 1).set_queue(1);
        role(p).mutable_routines(0)->mutable_commands()->SwapElements(0, 1);
        for (int i = 0; i < 2; ++i) program(p).mutable_calls()->RemoveLast()),
};
INSTANTIATE_TEST_SUITE_P(Programs, PlanReaderRefuses, testing::ValuesIn(programRules),
                         [](const auto &info) { return info.param.name; });

TEST(PlanReader, TakesAWaitThatIsIssuedBeforeItsSignal) {
  proto::Plan plan = soundPlan(); // the sum, on its own queue, is now issued before the feed it waits for
  role(plan).mutable_routines(0)->mutable_commands()->SwapElements(0, 1);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReader, TakesACapturedProgram) {
  proto::Plan plan = soundPlan();
  plan.mutable_machine()->set_device("cuda");
  plan.mutable_machine()->set_isa("sm_90");
  program(plan).set_captured(true);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReader, TakesACode) {
  proto::Plan plan = soundPlan();
  elementwise(plan).set_code(0);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReader, TakesATail) {
  proto::Plan plan = soundPlan();
  tail(plan);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReader, TakesANextValue) {
  proto::Plan plan = soundPlan();
  nextOfWeight(plan);
  EXPECT_EQ(errorOf([&] { plan::validatePlan(plan); }), "no error");
}

TEST(PlanReader, RefusesARunThatIsTooLongToPlay) {
  proto::Plan plan = soundPlan();
  for (int i = 0; i < (1 << 20); ++i)
    *program(plan).add_calls() = plan.roles(0).programs(0).calls(0);
  EXPECT_ERROR(plan::validatePlan(plan), "more than 2^26 or 2^18");
}

} // namespace
} // namespace ds::test
