//===- PlanDialect.td - what each role does -------------------------------===//
#ifndef DS_PLAN_DIALECT_TD
#define DS_PLAN_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::ds::plan";
  let summary = "what each role does: commands on queues, buffers at offsets";
  let description = [{
    One-to-one with `runtime/plan/plan.proto`, whose comments define the meaning; nothing is left to decide after it. A
    `plan.role` holds arenas, buffers, queues, events, routines (the commands of one call) and programs (calls).
  }];
  let useDefaultTypePrinterParser = 1;
  let usePropertiesForAttributes = 1;
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_Buffer : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "bytes of an arena";
}

def Plan_Token : TypeDef<Plan_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "a collective under way, from its command to its await";
}

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::ds::plan";
}
// Numbers and names are those of plan.proto.
def Plan_Scope : Plan_Enum<"Scope", "how long a buffer lives", [
    I32EnumAttrCase<"Plan", 1, "plan">, I32EnumAttrCase<"Step", 2, "step">, I32EnumAttrCase<"Slot", 3, "slot">,
    I32EnumAttrCase<"Call", 4, "call">]>;
/// Names of Arena.space.
def Plan_MemorySpace : Plan_Enum<"MemorySpace", "where an arena lies", [
    I32EnumAttrCase<"Device", 1, "device">, I32EnumAttrCase<"Host", 2, "host">, I32EnumAttrCase<"Nvme", 3, "nvme">]>;
def Plan_Category : Plan_Enum<"Category", "what a buffer is for", [
    I32EnumAttrCase<"Weights", 1, "weights">, I32EnumAttrCase<"Gradients", 2, "gradients">,
    I32EnumAttrCase<"Optimizer", 3, "optimizer">, I32EnumAttrCase<"Activations", 4, "activations">,
    I32EnumAttrCase<"Workspace", 5, "workspace">, I32EnumAttrCase<"Communication", 6, "communication">,
    I32EnumAttrCase<"Inputs", 7, "inputs">, I32EnumAttrCase<"Constants", 8, "constants">]>;
def Plan_QueueKind : Plan_Enum<"QueueKind", "what a queue's commands use", [
    I32EnumAttrCase<"Compute", 1, "compute">, I32EnumAttrCase<"Collective", 2, "collective">,
    I32EnumAttrCase<"CopyIn", 3, "copy_in">, I32EnumAttrCase<"CopyOut", 4, "copy_out">, I32EnumAttrCase<"Io", 5, "io">,
    I32EnumAttrCase<"Message", 6, "message">, I32EnumAttrCase<"Host", 7, "host">]>;
/// Numbers of Routine.Phase.
def Plan_Phase : Plan_Enum<"Phase", "the part of a run that a routine is", [
    I32EnumAttrCase<"Begin", 1, "begin">, I32EnumAttrCase<"Feed", 2, "feed">, I32EnumAttrCase<"Receive", 3, "receive">,
    I32EnumAttrCase<"Gather", 4, "gather">, I32EnumAttrCase<"Forward", 5, "forward">,
    I32EnumAttrCase<"Backward", 6, "backward">, I32EnumAttrCase<"Weight", 7, "weight">,
    I32EnumAttrCase<"Update", 8, "update">, I32EnumAttrCase<"Metric", 9, "metric">,
    I32EnumAttrCase<"Evaluate", 10, "evaluate">]>;
/// Numbers of Operand.Access.
def Plan_Access : Plan_Enum<"Access", "what a command does to an operand", [
    I32EnumAttrCase<"Read", 1, "read">, I32EnumAttrCase<"Write", 2, "write">,
    I32EnumAttrCase<"ReadWrite", 3, "read_write">, I32EnumAttrCase<"Scratch", 4, "scratch">]>;
/// Numbers of CollectiveCommand.Kind.
def Plan_CollectiveKind : Plan_Enum<"CollectiveKind", "what a collective does", [
    I32EnumAttrCase<"AllGather", 1, "all_gather">, I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">,
    I32EnumAttrCase<"AllReduce", 3, "all_reduce">, I32EnumAttrCase<"Broadcast", 4, "broadcast">,
    I32EnumAttrCase<"AllToAll", 5, "all_to_all">]>;

#endif // DS_PLAN_DIALECT_TD
