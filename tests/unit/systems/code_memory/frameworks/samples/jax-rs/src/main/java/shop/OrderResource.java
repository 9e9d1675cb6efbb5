package shop;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;

@Path("/orders")
public class OrderResource {
    private static final String LINES = "/{id}/lines";

    @GET
    @Produces("application/json")
    public String list() { return "[]"; }

    @Path("{id: [0-9]+}")
    @GET
    public String show(String id) { return id; }

    @POST
    @Path(LINES)
    public String add(String id) { return id; }
}
