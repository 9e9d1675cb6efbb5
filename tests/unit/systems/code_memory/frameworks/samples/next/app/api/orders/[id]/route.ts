export async function GET(request: Request) { return Response.json({}) }
export async function DELETE(request: Request) { return new Response(null) }
