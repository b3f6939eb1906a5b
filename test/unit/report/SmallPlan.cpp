//===- SmallPlan.cpp ------------------------------------------------------===//
#include "test/unit/report/SmallPlan.h"

#include <initializer_list>
#include <string>

namespace ds::report {
namespace {

using namespace plan::proto;

void addVariable(Plan &plan, const std::string &name, Variable::Kind kind) {
  Variable &variable = *plan.add_variables();
  variable.set_name(name);
  variable.set_dtype(DTYPE_F32);
  variable.add_shape(16);
  variable.add_shape(16);
  variable.set_kind(kind);
  variable.set_trainable(kind == Variable::PARAMETER);
  variable.mutable_source()->set_fill(0);
}

Buffer &addBuffer(Role &role, const std::string &name, Buffer::Scope scope, Buffer::Category category, uint64_t offset,
                  uint64_t bytes, uint32_t slots = 1) {
  Buffer &buffer = *role.add_buffers();
  buffer.set_name(name);
  buffer.set_scope(scope);
  buffer.set_category(category);
  buffer.set_offset(offset);
  buffer.set_bytes(bytes);
  buffer.set_slots(slots);
  for (uint32_t slot = 1; slot < slots; ++slot)
    buffer.add_slot_offsets(offset + slot * bytes);
  return buffer;
}

void addLife(Buffer &buffer, uint32_t program, uint32_t birthRoutine, uint32_t birth, uint32_t deathRoutine,
             uint32_t death) {
  Life &life = *buffer.add_lives();
  life.set_program(program);
  life.set_birth_routine(birthRoutine);
  life.set_birth_command(birth);
  life.set_death_routine(deathRoutine);
  life.set_death_command(death);
}

/// A routine of fills of these buffers.
void addRoutine(Role &role, const std::string &name, Routine::Phase phase, std::initializer_list<uint32_t> filled) {
  Routine &routine = *role.add_routines();
  routine.set_name(name);
  routine.set_phase(phase);
  if (phase != Routine::UPDATE)
    routine.set_stage(0);
  for (uint32_t buffer : filled) {
    Operand &target = *routine.add_commands()->mutable_fill()->mutable_target();
    target.set_buffer(buffer);
    target.set_dtype(DTYPE_F32);
    target.add_shape(int64_t(role.buffers(int(buffer)).bytes() / 4));
    target.set_access(Operand::WRITE);
  }
}

uint32_t addValue(Plan &plan, std::initializer_list<int64_t> shape) {
  ReferenceValue &value = *plan.mutable_reference()->add_values();
  value.set_dtype(DTYPE_F32);
  for (int64_t size : shape)
    value.add_shape(size);
  return uint32_t(plan.reference().values_size() - 1);
}

void addProduct(Plan &plan, const std::string &function, uint32_t left, uint32_t right, uint32_t result) {
  ReferenceOp &op = *plan.mutable_reference()->add_ops();
  op.set_op("train.matmul");
  op.set_name("/h.0/mlp/MatMul");
  op.set_function(function);
  op.add_operands(left);
  op.add_operands(right);
  op.add_results(result);
}

void addBuffers(Role &role) {
  addBuffer(role, "w", Buffer::PLAN, Buffer::WEIGHTS, 0, 1024).set_variable(0);
  addBuffer(role, "m", Buffer::PLAN, Buffer::OPTIMIZER, 1024, 1024).set_variable(1);
  addLife(addBuffer(role, "g", Buffer::STEP, Buffer::GRADIENTS, 2048, 1024), 0, 1, 0, 2, 0);
  addLife(addBuffer(role, "x", Buffer::SLOT, Buffer::INPUTS, 3072, 512, 2), 0, 0, 0, 1, 1);
  addLife(addBuffer(role, "h", Buffer::SLOT, Buffer::ACTIVATIONS, 4096, 2048, 2), 0, 0, 1, 1, 0);
  addLife(addBuffer(role, "scratch", Buffer::CALL, Buffer::WORKSPACE, 8192, 4096), 0, 1, 1, 1, 1);
  addLife(addBuffer(role, "e", Buffer::CALL, Buffer::ACTIVATIONS, 4096, 3072), 1, 3, 0, 3, 0);
}

void addPrograms(Role &role) {
  Program &step = *role.add_programs();
  step.set_name("step");
  for (auto [routine, microbatch] : {std::pair(0u, 0u), {0u, 1u}, {1u, 0u}, {1u, 1u}, {2u, 1u}}) {
    Call &call = *step.add_calls();
    call.set_routine(routine);
    call.set_microbatch(microbatch);
  }
  Program &evaluate = *role.add_programs();
  evaluate.set_name("evaluate");
  evaluate.add_calls()->set_routine(3);
}

} // namespace

Plan smallPlan() {
  Plan plan;
  plan.set_format_version(2);
  plan.set_compiler_revision("0.1.0");
  plan.set_model("small");
  plan.mutable_machine()->set_name("cpu");
  plan.mutable_machine()->set_device("cpu");
  plan.mutable_machine()->set_threads(2);
  plan.mutable_machine()->set_alignment(64);
  plan.set_config_json("{\"train_batch_size\":16}");
  ConfigAnswer &answer = *plan.add_config();
  answer.set_path("zero_optimization.stage");
  answer.set_value_json("0");
  answer.set_status("honoured");
  answer.set_note("nothing to do");
  plan.set_numerics("bit-equal");
  plan.mutable_training()->set_micro_batch_size(8);
  plan.mutable_training()->set_accumulation_steps(2);
  plan.mutable_training()->set_train_batch_size(16);
  addVariable(plan, "h.0.w", Variable::PARAMETER);
  plan.mutable_variables(0)->add_aliases("head.w");
  addVariable(plan, "h.0.w.m", Variable::OPTIMIZER);
  // 2 * 8 * 4 * 16 = 1,024 each; the second has its left side transposed, the third is no work of a step.
  const uint32_t right = addValue(plan, {16, 4}), result = addValue(plan, {8, 4});
  addProduct(plan, "microbatch", addValue(plan, {8, 16}), right, result);
  addProduct(plan, "microbatch", addValue(plan, {16, 8}), right, addValue(plan, {8, 4}));
  addProduct(plan, "evaluate", addValue(plan, {8, 16}), right, addValue(plan, {8, 4}));
  Role &role = *plan.add_roles();
  role.set_name("main");
  role.add_ranks(0);
  role.add_ranks(0);
  Arena &arena = *role.add_arenas();
  arena.set_space("device");
  arena.set_bytes(12288);
  arena.set_peak_live_bytes(4711); // what the plan says is not what is reported
  addBuffers(role);
  role.add_queues()->set_name("compute");
  role.mutable_queues(0)->set_kind(Queue::COMPUTE);
  addRoutine(role, "forward", Routine::FORWARD, {3, 4});
  addRoutine(role, "backward", Routine::BACKWARD, {2, 5});
  addRoutine(role, "update", Routine::UPDATE, {0});
  addRoutine(role, "evaluate", Routine::EVALUATE, {6});
  role.mutable_routines(1)->mutable_commands(1)->add_reference(1);
  addPrograms(role);
  return plan;
}

void forgetStages(Role &role) {
  for (Routine &routine : *role.mutable_routines()) {
    routine.clear_phase();
    routine.clear_stage();
  }
}

} // namespace ds::report
