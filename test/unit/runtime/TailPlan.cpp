//===- TailPlan.cpp - a plan whose update may have to be made again -------===//
#include "test/unit/runtime/TailPlan.h"

#include "core/DType.h"
#include "core/FilePage.h"
#include "runtime/plan/plan.pb.h"
#include "test/unit/runtime/PlanBuilder.h"
#include "test/unit/runtime/ShardedPlan.h"

#include <cstdint>
#include <string>

namespace ds::test {
namespace {

using Tensor = PlanBuilder::Tensor;

enum Arena : uint32_t { Device, Host, File };

/// To the end of another arena.
void move(PlanBuilder &b, const Tensor &tensor, Arena arena) {
  proto::Buffer &buffer = *b.role().mutable_buffers(int(tensor.buffer));
  proto::Arena &space = *b.role().mutable_arenas(int(arena));
  buffer.set_arena(arena);
  buffer.set_offset(space.bytes());
  space.set_bytes((space.bytes() + buffer.bytes() + filePage - 1) / filePage * filePage);
}

class Builder {
public:
  explicit Builder(uint32_t ranks) {
    b_.ranks(ranks);
    for (const char *space : {"host", "nvme"})
      b_.role().add_arenas()->set_space(space);
    b_.plan.mutable_nvme()->set_folder(".");
    b_.plan.mutable_nvme()->set_block_bytes(filePage);
    b_.plan.mutable_nvme()->set_queue_depth(2);
    compute_ = b_.queue("compute");
    comm_ = b_.queue("comm", proto::Queue::COLLECTIVE);
    host_ = b_.queue("host", proto::Queue::HOST);
    read_ = b_.queue("read", proto::Queue::IO);
    write_ = b_.queue("write", proto::Queue::IO);
    in_ = b_.queue("in", proto::Queue::COPY_IN);
    out_ = b_.queue("out", proto::Queue::COPY_OUT);
    p_ = b_.variable("p", DType::F32, {tailElements}, 1);
    m_ = b_.variable("m", DType::F32, {tailElements}, 0, proto::Variable::OPTIMIZER);
    b_.plan.mutable_variables(1)->set_of(0);
    next_ = b_.tensor("m::next", DType::F32, {tailElements}, proto::Buffer::PLAN);
    b_.role().mutable_buffers(int(next_.buffer))->set_next_of(m_.buffer);
    one_ = b_.variable("one", DType::F32, {tailElements}, 1, proto::Variable::CONSTANT);
    ten_ = b_.variable("ten", DType::F32, {tailElements}, 10, proto::Variable::CONSTANT);
    near_ = b_.tensor("near", DType::F32, {tailElements}, proto::Buffer::STEP);
    kept_ = b_.tensor("kept", DType::F32, {tailElements}, proto::Buffer::STEP);
    here_ = b_.tensor("here", DType::F32, {tailElements}, proto::Buffer::STEP);
    loss_ = b_.tensor("loss", DType::F32, {}, proto::Buffer::STEP);
    for (const Tensor &tensor : {one_, ten_, near_, kept_})
      move(b_, tensor, Host);
    for (const Tensor &tensor : {m_, next_})
      move(b_, tensor, File);
  }

  PlanBuilder build(const std::string &last) {
    const uint32_t begin = b_.routine("begin"), update = b_.routine("update"), finish = b_.routine("finish"),
                   again = b_.routine("again");
    measure(begin, finish);
    signal(b_.copy(update, out_, p_, kept_), event("kept"));
    advance(update, one_, "");
    wait(b_.kernel(update, compute_, "subtract", "rm", {here_, p_}), event("arrived"));
    auto &subtract = *b_.role().mutable_routines(int(update))->mutable_commands()->rbegin();
    wait(subtract, event("kept"));
    signal(subtract, event("updated"));
    wait(b_.copy(again, in_, kept_, p_), event("updated"));
    advance(again, ten_, "2");
    wait(last == "subtract" ? b_.kernel(again, compute_, last, "rm", {here_, p_})
                            : b_.kernel(again, compute_, last, "m", {p_}),
         event("arrived2"));
    const uint32_t step = b_.program("step"), evaluate = b_.program("evaluate");
    for (const uint32_t routine : {begin, update, finish, again})
      b_.call(step, routine);
    for (const uint32_t routine : {begin, finish})
      b_.call(evaluate, routine);
    proto::Tail &tail = *b_.role().mutable_programs(int(step))->mutable_tail();
    tail.set_first_call(3);
    *tail.mutable_unless_one() = operandOf(loss_, proto::Operand::READ);
    for (const uint32_t program : {step, evaluate})
      b_.metric(program, "loss", loss_);
    b_.life(loss_, step, finish, 0, finish, 0);
    b_.life(loss_, evaluate, finish, 0, finish, 0);
    b_.life(near_, step, update, 1, again, 4);
    b_.life(here_, step, update, 4, again, 5);
    b_.life(kept_, step, update, 0, again, 0);
    return b_;
  }

private:
  uint32_t event(const std::string &name) {
    for (int i = 0; i < b_.role().events_size(); ++i)
      if (b_.role().events(i).name() == name)
        return uint32_t(i);
    return b_.event(name);
  }

  void measure(uint32_t begin, uint32_t finish) {
    const uint32_t input = b_.input("x", DType::F32, {1, 1});
    const Tensor x = b_.tensor("x", DType::F32, {1, 1}, proto::Buffer::CALL);
    const Tensor own = b_.tensor("own", DType::F32, {}, proto::Buffer::STEP);
    b_.feed(begin, compute_, input, x);
    signal(b_.kernel(begin, compute_, "sum", "rw", {x, own}), event("measured"));
    wait(b_.collective(finish, comm_, proto::CollectiveCommand::ALL_REDUCE, own, loss_), event("measured"));
    for (const uint32_t program : {0, 1}) {
      b_.life(x, program, begin, 0, begin, 1);
      b_.life(own, program, begin, 1, finish, 0);
    }
  }

  /// Four commands: near = m + by, the next m and here = near. The second time waits for the first.
  void advance(uint32_t routine, const Tensor &by, const std::string &time) {
    proto::Command &read = b_.copy(routine, read_, m_, near_);
    signal(read, event("read" + time));
    if (!time.empty())
      wait(read, event("updated"));
    proto::Command &made = b_.kernel(routine, host_, "accumulate", "rm", {by, near_});
    wait(made, event("read" + time));
    signal(made, event("made" + time));
    proto::Command &write = b_.copy(routine, write_, near_, next_);
    wait(write, event("made" + time));
    signal(write, event("written" + time));
    proto::Command &arrived = b_.copy(routine, in_, near_, here_);
    wait(arrived, event("written" + time)); // near is read no more behind it
    signal(arrived, event("arrived" + time));
  }

  PlanBuilder b_;
  uint32_t compute_, comm_, host_, read_, write_, in_, out_;
  Tensor p_, m_, next_, one_, ten_, near_, kept_, here_, loss_;
};

} // namespace

PlanBuilder tailPlan(uint32_t ranks) { return Builder(ranks).build("subtract"); }

PlanBuilder failingTailPlan(uint32_t ranks) { return Builder(ranks).build("fail"); }

PlanBuilder shardedTailPlan() {
  PlanBuilder b = shardedPlan(2, 1);
  proto::Program &step = *b.role().mutable_programs(0);
  proto::Tail &tail = *step.mutable_tail();
  tail.set_first_call(uint32_t(step.calls_size()));
  *tail.mutable_unless_one() = step.metrics(0).source();
  b.call(0, 0);
  return b;
}

} // namespace ds::test
