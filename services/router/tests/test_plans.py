"""Plans over changes of the table: those of what stays stay, the others are made anew."""

from inferbus_router.plan import Plan
from services.router.tests.builders import endpoint, route, route_key, rule, server, server_key
from services.router.tests.conftest import RouterUnderTest

PATH = "/v1/chat/completions"


def plan(router: RouterUnderTest, model: str = "m") -> Plan:
    """The plan of the model's only route and server."""
    state = router.running.router.state
    found, chosen = state.table.indexes.by_model[model][0]
    drawn = state.fleet.server(chosen.servers[0])
    assert drawn is not None
    return state.plans.find(found, drawn, model, PATH)


async def test_a_plan_outlives_changes_of_others(router: RouterUnderTest) -> None:
    router.serve(endpoint(1))
    before = plan(router)
    router.apply({server_key("other"): server(endpoint(2)), route_key("o"): route(model="n")})

    assert plan(router) is before


async def test_a_changed_server_or_route_has_another_plan(router: RouterUnderTest) -> None:
    router.serve(endpoint(1))
    before = plan(router)
    router.apply({server_key("ms"): server(endpoint(1), model="renamed")})
    renamed = plan(router)
    assert renamed is not before
    assert renamed.renamed == "renamed"

    router.apply({route_key("r"): route(rule(("ms", 5)))})
    assert plan(router) is not renamed


async def test_demand_of_a_model_goes_on_over_changes_of_its_endpoints(
    router: RouterUnderTest,
) -> None:
    """Cells that plans hold are those that are told."""
    router.serve(endpoint(1))
    first = plan(router).cell
    assert first is not None
    router.serve(endpoint(1), endpoint(2))
    assert plan(router).cell is first

    first.arrivals += 1
    await router.stop()
    assert router.demand.total("arrivals") == 1


async def test_what_left_takes_its_plans_along(router: RouterUnderTest) -> None:
    router.serve(endpoint(1))
    before = plan(router)
    router.remove(route_key("r"))
    router.serve(endpoint(1))

    assert plan(router) is not before
