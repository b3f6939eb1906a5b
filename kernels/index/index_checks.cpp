// What the rows of lookups and searches cannot say.
#include "kernels/index/element_index_call.h"
#include "kernels/index/gather_call.h"
#include "kernels/index/scatter_elements_call.h"
#include "kernels/index/search_call.h"

namespace ds::kernels {

void checkGather(const Call &call, Device) { (void)GatherCall(call, "data", "y"); }
void checkGatherGrad(const Call &call, Device) { (void)GatherCall(call, "ddata", "dy"); }
void checkGatherElements(const Call &call, Device) { (void)ElementIndex(call); }
void checkScatterElements(const Call &call, Device) { (void)ScatterElementsCall(call); }
void checkArgMax(const Call &call, Device) { (void)ArgMaxCall(call); }
void checkTopK(const Call &call, Device) { (void)TopKCall(call); }
void checkCumSum(const Call &call, Device) { (void)CumSumCall(call); }

} // namespace ds::kernels
