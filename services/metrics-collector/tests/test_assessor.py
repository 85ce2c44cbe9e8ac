"""What is wrong with a policy's samples is a fact about the policy, on a real bus."""

from collector_builders import gauge_page, pod, policy, serving, single, workload
from collector_platform import platform, scaled
from collector_servers import good, page_server

from inferbus_contracts.keys import ObjectKey
from tests.support.eventually import eventually
from tests.support.nats import NatsServer

BINDING = ObjectKey("AutoscalingPolicyBinding", "default", "b-m")
POLICY = ObjectKey("AutoscalingPolicy", "default", "far")


async def test_a_pod_that_answers_badly_is_named_in_a_fact_about_its_policy_until_it_recovers(
    nats_server: NatsServer,
) -> None:
    bad = good(b"", status="500 Internal Server Error")
    async with page_server(bad) as page, platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.observe(serving(), workload(pod("m-0")))
        await collect("a")
        await eventually(lambda: world.told_of(BINDING))
        port = page.endpoint.port
        problem = f"{serving()}: pod m-0: port {port}/metrics: HTTP status 500"
        assert world.told_of(BINDING) == [[problem]]
        rounds = len(world.of(serving()))
        await eventually(lambda: len(world.of(serving())) > rounds + 2)
        assert world.told_of(BINDING) == [[problem]], "what is known is not told again"
        page.answer = good(gauge_page(4))
        await eventually(lambda: len(world.told_of(BINDING)) == 2)
        assert world.told_of(BINDING)[1] == []


async def test_what_is_told_survives_a_restart_and_goes_with_its_policy(
    nats_server: NatsServer,
) -> None:
    bad = good(gauge_page(4) + b"load x\n")
    async with page_server(bad) as page, platform(nats_server) as (world, collect):
        await world.apply(policy())
        await world.apply(scaled(page))
        await world.observe(serving(), workload(pod("m-0")))
        wrong = [f"{serving()}: pod m-0: 1 malformed lines: load x"]
        async with world.collector("a"):
            await eventually(lambda: wrong in world.told_of(BINDING))
        before, told = len(world.of(serving())), world.told_of(BINDING)
        assert told[-1] == wrong
        await collect("b")
        await eventually(lambda: len(world.of(serving())) > before + 4)
        assert world.told_of(BINDING) == told
        await world.apply(scaled(page), deleted=True)
        await eventually(lambda: len(world.told_of(BINDING)) > len(told))
        assert world.told_of(BINDING)[len(told) :] == [[]]


async def test_as_d25_a_policy_that_may_not_be_sampled_says_so(nats_server: NatsServer) -> None:
    async with platform(nats_server) as (world, collect):
        await world.apply(policy("far", homogeneousTarget=single(ref={"namespace": "other"})))
        await collect("a")
        await eventually(lambda: world.told_of(POLICY))
        ((problem,),) = world.told_of(POLICY)
        assert "the target is in another namespace" in problem
        assert "NAMESPACE_GRANTS=default/other" in problem
        assert world.samples == []
